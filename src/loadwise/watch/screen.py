"""What `loadwise watch` shows: the verdict, what each member does, and what the assignors would give."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from loadwise.compare.comparison import Comparison
from loadwise.counted import counted
from loadwise.folded_table import Head, folded
from loadwise.folding import GAP
from loadwise.watch.columns import Column, columns
from loadwise.watch.status import Condition, GroupStatus, MemberStatus
from loadwise.watch.verdict import Verdict

_STYLES: Mapping[Condition, str] = {
    Condition.DROWNS: "bold red",
    Condition.BEHIND: "yellow",
    Condition.CATCHES_UP: "yellow",
    Condition.KEEPS_UP: "green",
    Condition.IDLE: "dim",
}
_ROOMY = 110
"""A narrower screen has short column names."""
_LEAST_NAME = 8
"""So much is left of a member's name on the narrowest screen."""


def shown(status: GroupStatus, verdict: Verdict, comparison: Comparison | None, width: int) -> RenderableType:
    """The whole screen in ``width`` characters. ``comparison`` has the assignors under the group's demand."""
    protocol = _chosen(status.protocol or "no assignor")
    head = Text.assemble((status.group_id, "bold"), "  ", protocol, f", {status.state}")
    head.append(f"  {counted(len(status.members), 'member')}, lag {status.lag:,}")
    if status.window_s:
        head.append(f", {status.arrival_per_s:,.0f} records/s arrive, {status.processed_per_s:,.0f} are processed")
    parts: list[RenderableType] = [head, Text(verdict.text, "bold red" if verdict.is_alarming else "bold green")]
    if status.switch is not None and status.switch.off:
        parts.append(Text(f"By `loadwise live`, {status.switch}.", "yellow"))
    if status.compared is not None:
        lag_s, saved_s = status.compared
        than = f"{abs(saved_s):.1f} s {'less' if saved_s >= 0 else 'more'} than under sticky"
        parts.append(Text(f"Highest lag of a member by the leader's estimate: {lag_s:.1f} s of arrivals, {than}."))
    if status.unowned:
        parts.append(Text(f"{status.unowned:,} partitions have no owner.", "red"))
    if status.retention_left_s is not None and status.retention_partition is not None:
        topic, number = status.retention_partition
        left = duration(status.retention_left_s)
        parts.append(Text(f"Unread records of {topic}-{number} will be deleted by retention.ms in {left}.", "red"))
    parts.append(_members(status, width))
    if comparison is not None:
        parts.append(_assignors(comparison))
    return Group(*parts)


def duration(seconds: float) -> str:
    """A time in the largest unit that fits it twice, as ``3 hours``."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{math.floor(seconds)} seconds"


def _chosen(name: str) -> Text:
    """What a client calls itself: no markup of rich's, and nothing that a terminal would obey."""
    return Text("".join(sign if sign.isprintable() else "\ufffd" for sign in name))


def _members(status: GroupStatus, width: int) -> Group:
    shown = columns(width)
    names = [column.name if width >= _ROOMY else column.short or column.name for column in shown]
    rows = [[_cell(column, member, status) for column in shown] for member in status.members]
    widths = [max(map(len, cells)) for cells in zip(names, *rows, strict=True)]
    # Names that clients choose give way where the screen is narrow, numbers do not.
    room = max(width - sum(each + GAP for each in widths[1:]), _LEAST_NAME)
    for row in rows:
        row[0].truncate(room, overflow="ellipsis")
    heads = [Head(name, column.is_number) for column, name in zip(shown, names, strict=True)]
    return folded(heads, rows, width)


def _cell(column: Column, member: MemberStatus, status: GroupStatus) -> Text:
    text = column.text(member, status)
    if column.name in {"member", "host"}:
        return _chosen(text)
    if column.name in {"", "condition"}:
        return Text(text, _STYLES[member.condition])
    overloaded = column.name == "utilisation" and member.condition is Condition.DROWNS
    return Text(text, "bold red" if overloaded else "")


def _assignors(comparison: Comparison) -> Text:
    text = Text("Busiest member over the mean, by demand: ")
    text.append(", ".join(f"{row.assignor} {row.measured.max_over_mean:.2f}" for row in comparison.rows))
    return text
