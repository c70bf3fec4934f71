"""The columns of ``loadwise watch``: their names, meanings, and the least width at which each is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loadwise.watch.status import GroupStatus, MemberStatus

BAR_WIDTH = 16
"""Characters of the longest bar of lag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of the table of members."""

    name: str
    meaning: str
    text: Callable[[MemberStatus, GroupStatus], str]
    is_number: bool = True
    needs_width: int = 0
    """A narrower screen leaves it out."""
    short: str = ""
    """Its name on a narrow screen."""


def columns(width: int) -> list[Column]:
    """The columns that fit a screen of ``width`` characters."""
    return [column for column in COLUMNS if width >= column.needs_width]


def _rate(of: Callable[[MemberStatus], float]) -> Callable[[MemberStatus, GroupStatus], str]:
    return lambda member, status: f"{of(member):,.0f}" if status.window_s else ""


def _utilisation(member: MemberStatus, _: GroupStatus) -> str:
    return "" if member.utilisation is None else f"{member.utilisation:.0%}"


def _bar(member: MemberStatus, status: GroupStatus) -> str:
    most = max((each.lag for each in status.members), default=0)
    return "█" * -(-BAR_WIDTH * member.lag // most) if most else ""


COLUMNS: tuple[Column, ...] = (
    Column(
        name="member",
        meaning="the client id, or the group instance id",
        text=lambda member, _: member.label,
        is_number=False,
    ),
    Column(
        name="host",
        meaning="the host on which it runs",
        text=lambda member, _: member.host,
        is_number=False,
        needs_width=90,
    ),
    Column(
        name="partitions",
        short="parts",
        meaning="how many partitions it owns",
        text=lambda member, _: f"{member.partitions:,}",
        needs_width=70,
    ),
    Column(name="lag", meaning="how many records are waiting in them", text=lambda member, _: f"{member.lag:,}"),
    Column(name="", meaning="the lag as a bar", text=_bar, is_number=False, needs_width=110),
    Column(
        name="arrives/s",
        short="in/s",
        meaning="how many records arrive per second",
        text=_rate(lambda member: member.arrival_per_s),
    ),
    Column(
        name="processed/s",
        short="out/s",
        meaning="how many records it commits per second, over the window",
        text=_rate(lambda member: member.processed_per_s),
    ),
    Column(
        name="utilisation",
        short="used",
        meaning="demand (arrivals and backlog) over capacity, as in a leader's log; known while it has a backlog",
        text=_utilisation,
    ),
    Column(
        name="condition",
        meaning="keeps up, catches up, behind (a steady backlog), drowns (a growing one), or idle",
        text=lambda member, status: member.condition.value if status.window_s else "",
        is_number=False,
    ),
)
