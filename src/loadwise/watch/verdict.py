"""One sentence on a group for its operator, which stands while the group stands. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from loadwise.counted import counted
from loadwise.watch.status import Condition, GroupStatus, MemberStatus

_READINGS = 3
"""Another verdict is shown after this number of readings in a row that give it."""


class Kind(Enum):
    """The kind of a verdict; the numbers in its sentence change from reading to reading."""

    UNKNOWN = "unknown"
    FINE = "fine"
    BACKLOG = "backlog"
    TOO_HOT = "a partition is too hot"
    UNEVEN = "the load is not shared well"
    TOO_SMALL = "the group is too small"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict and its sentence."""

    kind: Kind
    text: str

    @property
    def is_alarming(self) -> bool:
        """Whether a member falls behind."""
        return self.kind in {Kind.TOO_HOT, Kind.UNEVEN, Kind.TOO_SMALL}


class StandingVerdict:
    """The verdict that is shown. Rates of a window are not exact, so one reading does not change it."""

    def __init__(self) -> None:
        self._shown: Verdict | None = None
        self._other: Kind | None = None
        self._times = 0

    def after(self, status: GroupStatus) -> Verdict:
        """The verdict to show after one more reading."""
        now = verdict(status)
        if self._shown is None or Kind.UNKNOWN in {now.kind, self._shown.kind} or now.kind is self._shown.kind:
            self._shown, self._other, self._times = now, None, 0
            return now
        self._times = self._times + 1 if now.kind is self._other else 1
        self._other = now.kind
        if self._times >= _READINGS:
            self._shown, self._other, self._times = now, None, 0
        return self._shown


def verdict(status: GroupStatus) -> Verdict:
    """The verdict on one reading."""
    if not status.window_s:
        return Verdict(Kind.UNKNOWN, "Rates are known after the next reading.")
    behind = [member for member in status.members if member.condition is Condition.DROWNS]
    spare = [member for member in status.members if member.condition in (Condition.IDLE, Condition.KEEPS_UP)]
    if not behind:
        if any(member.condition in (Condition.CATCHES_UP, Condition.BEHIND) for member in status.members):
            return Verdict(Kind.BACKLOG, "There is a backlog, and no member falls further behind.")
        return Verdict(Kind.FINE, "Every member keeps up.")
    falls = f"{_falls(behind)} behind by {math.fsum(map(_gap, behind)):,.0f} records/s"
    if status.too_hot is not None:
        topic, number = status.too_hot
        text = f"{falls}: {topic}-{number} alone gets more than its owner processes. Use more partitions or other keys."
        return Verdict(Kind.TOO_HOT, text)
    if spare:
        text = f"{falls} while {counted(len(spare), 'member')} had time left: the load is not shared well."
        return Verdict(Kind.UNEVEN, text)
    wanted = status.members_wanted
    takes = f" It takes {counted(wanted, 'member')} like these." if wanted and wanted > len(status.members) else ""
    return Verdict(Kind.TOO_SMALL, f"{falls}, and no member has time left: the group as a whole is too small.{takes}")


def _gap(member: MemberStatus) -> float:
    return member.arrival_per_s - member.processed_per_s


def _falls(members: list[MemberStatus]) -> str:
    return f"{counted(len(members), 'member')} {'falls' if len(members) == 1 else 'fall'}"
