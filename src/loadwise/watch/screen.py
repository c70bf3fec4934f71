"""What `loadwise watch` shows: the verdict, what each member does, and what the assignors would give."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from loadwise.compare.comparison import Comparison
from loadwise.watch.status import Condition, GroupStatus, MemberStatus

_STYLES: Mapping[Condition, str] = {
    Condition.DROWNS: "bold red",
    Condition.BEHIND: "yellow",
    Condition.CATCHES_UP: "yellow",
    Condition.KEEPS_UP: "green",
    Condition.IDLE: "dim",
}
_BAR = 16
"""Characters of the longest bar of lag."""


def shown(status: GroupStatus, comparison: Comparison | None) -> RenderableType:
    """All of it, for a terminal or a log. ``comparison`` puts the assignors to the demand of the group."""
    protocol = _chosen(status.protocol or "no assignor")
    head = Text.assemble((status.group_id, "bold"), "  ", protocol, f", {status.state}")
    head.append(f"  {len(status.members):,} members, lag {status.lag:,}")
    if status.window_s:
        head.append(f", {status.arrival_per_s:,.0f} records/s arrive, {status.processed_per_s:,.0f} are processed")
    verdict = Text(status.verdict, "bold red" if _is_alarming(status) else "bold green")
    parts: list[RenderableType] = [head, verdict]
    if status.unowned:
        parts.append(Text(f"{status.unowned:,} partitions have no owner.", "red"))
    if status.retention_left_s is not None and status.retention_partition is not None:
        topic, number = status.retention_partition
        left = duration(status.retention_left_s)
        parts.append(Text(f"Unread records of {topic}-{number} will be deleted by retention.ms in {left}.", "red"))
    parts.append(_members(status))
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


def _is_alarming(status: GroupStatus) -> bool:
    return any(member.condition is Condition.DROWNS for member in status.members)


def _members(status: GroupStatus) -> Table:
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    table.add_column("member", no_wrap=True)
    table.add_column("host", no_wrap=True, style="dim")
    for name in ("partitions", "lag", "", "arrives/s", "processed/s", "utilisation"):
        table.add_column(name, justify="left" if not name else "right", no_wrap=True)
    table.add_column("", no_wrap=True)
    most = max((member.lag for member in status.members), default=0)
    for member in status.members:
        style = _STYLES[member.condition]
        bar = "█" * math.ceil(_BAR * member.lag / most) if most else ""
        rates = ("", "") if not status.window_s else (f"{member.arrival_per_s:,.0f}", f"{member.processed_per_s:,.0f}")
        table.add_row(
            _chosen(member.label),
            _chosen(member.host),
            f"{member.partitions:,}",
            f"{member.lag:,}",
            Text(bar, style),
            *rates,
            _utilisation(member),
            Text(member.condition.value if status.window_s else "", style),
        )
    return table


def _utilisation(member: MemberStatus) -> Text:
    if member.utilisation is None:
        return Text("")
    return Text(f"{member.utilisation:.0%}", "bold red" if member.utilisation > 1 else "")


def _assignors(comparison: Comparison) -> Text:
    text = Text("Busiest member over the mean, by demand: ")
    text.append(", ".join(f"{row.assignor} {row.measured.max_over_mean:.2f}" for row in comparison.rows))
    return text
