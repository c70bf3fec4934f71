"""Whether the group as a whole is fast enough for the arrivals, and how many members it takes.

An assignor can only share the work out. A group slower than the stream falls behind under each of them, and a
partition that gets more than one member processes falls behind however many members there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadwise.assignor.live.scaling import members_that_do
from loadwise.demo.figures import Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainVerdict:
    """What a group can keep up with, if the stream goes on arriving with the shares that its partitions had so far."""

    arrival_per_s: float
    """Records a second that arrive."""
    rate_per_s: float
    """Records a second that one member processes."""
    members: int
    """Members in the group."""
    needed: int | None
    """The members that it takes; None where no number of them is enough."""
    hottest: int
    """The partition that gets most."""
    hottest_per_s: float
    """Records a second that arrive there."""

    @property
    def group_per_s(self) -> float:
        """Records a second that the group processes if no member is idle."""
        return self.rate_per_s * self.members

    @property
    def enough(self) -> bool:
        """Whether some assignment lets the group keep up."""
        return self.needed is not None and self.needed <= self.members


def verdict(ends: Sequence[int], *, arrival_per_s: float, rate_per_s: float, members: int) -> DrainVerdict:
    """Judge a group of equal members; ``ends`` has the records of each partition, whose shares stay as they are."""
    total = sum(ends)
    arrivals = [arrival_per_s * end / total if total else 0.0 for end in ends]
    hottest = max(range(len(arrivals)), key=arrivals.__getitem__)
    return DrainVerdict(
        arrival_per_s=arrival_per_s,
        rate_per_s=rate_per_s,
        members=members,
        needed=members_needed(arrivals, rate_per_s),
        hottest=hottest,
        hottest_per_s=arrivals[hottest],
    )


def members_needed(arrivals_per_s: Sequence[float], rate_per_s: float) -> int | None:
    """The fewest members for which largest-first leaves none with more than it processes; None where none can."""
    if max(arrivals_per_s) > rate_per_s:
        return None
    return members_that_do(np.array(arrivals_per_s), np.array([rate_per_s]), 1.0)


def explain(judged: DrainVerdict, rows: Sequence[Figures]) -> list[str]:
    """The verdict in sentences, and the assignors with which a group that is fast enough falls behind."""
    arrival, group = f"{judged.arrival_per_s:,.0f}", f"{judged.group_per_s:,.0f}"
    head = (
        f"If {arrival} records/s kept arriving, spread like these: {judged.members} members process {group} records/s"
        " together"
    )
    if judged.needed is None:
        return [
            f"{head}, but partition {judged.hottest} alone gets {judged.hottest_per_s:,.0f} and one member processes"
            f" {judged.rate_per_s:,.0f}: no number of members helps. It takes faster members, or keys that spread"
            " over more partitions."
        ]
    if not judged.enough:
        return [f"{head}: too slow, and no assignor helps. It takes {judged.needed} members."]
    lines = [f"{head}: enough, {judged.arrival_per_s / judged.group_per_s:.0%} used; it takes {judged.needed}."]
    behind = [row for row in rows if row.keeps_up_per_s < judged.arrival_per_s]
    if behind:
        names = ", ".join(f"{row.assignor} (up to {row.keeps_up_per_s:,.0f})" for row in behind)
        lines.append(f"Yet one of the {judged.members} would fall further and further behind under {names}.")
    return lines
