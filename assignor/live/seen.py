"""The rates of members whose backlog has grown in some intervals between notes in a row, which is their capacity.

The notes have the times of commits by the member's own clock, so the rate is exact. A pause or a slow record lies
within one interval, because the member commits nothing meanwhile, and the backlog shrinks in the next one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from loadwise.assignor.live.tuning import SeenTuning
from loadwise.assignor.model import Bools, Floats, Ints, Owners


class Pace(NamedTuple):
    """The rate of a member that falls behind, in records/s, with its bounds."""

    per_s: float
    least_per_s: float
    most_per_s: float
    intervals: int = 1
    """In how many intervals in a row its backlog has grown."""


@dataclass(frozen=True, eq=False, slots=True)
class _Mark:
    """A member at the moment of one of its commits; arrays over the group's partitions."""

    at_ms: int  # by the member's clock
    read_ms: int  # when it was read, by the leader's clock
    end: Floats
    done: Floats  # records that the group has processed until then, in units of cost


class Seen:
    """The newest commits of each member of one assignment."""

    def __init__(self, tuning: SeenTuning) -> None:
        self._tuning = tuning
        self._marks: dict[str, deque[_Mark]] = {}
        self._rows: dict[str, Ints] = {}
        self.suspects: frozenset[str] = frozenset()
        """Members whose backlog grew in the newest reading; an early next reading confirms it."""
        self._grew_ms: dict[str, int] = {}  # when a reading last showed that a member's backlog had grown
        self.at_least: dict[str, float] = {}  # lower bounds of members' capacities by the newest reading, in records/s

    def begin(self, members: Sequence[str], owner: Owners) -> None:
        """Watch a new assignment, and drop the marks of the last one."""
        self._marks = {member: deque(maxlen=self._tuning.marks) for member in members}
        order = np.argsort(owner, kind="stable")
        starts = np.searchsorted(owner[order], np.arange(len(members) + 1))
        self._rows = {
            member: order[start:stop] for member, start, stop in zip(members, starts[:-1], starts[1:], strict=True)
        }
        self.suspects, self._grew_ms = frozenset(), {}

    def saw(self, noted: Mapping[str, int], *, end: Floats, done: Floats, rate: Floats, now_ms: int) -> dict[str, Pace]:
        """Return the pace of the members that fall behind; ``noted`` has the time of each member's newest note.

        The arrays are float64[P], in units of cost: where partitions end, NaN if not read, records done, and rates.
        """
        suspects, behind = set(), {}
        self.at_least = {}
        for member, at_ms in noted.items():
            if member not in self._marks:
                continue
            marks, rows = self._marks[member], self._rows[member]
            mark = _Mark(at_ms, now_ms, end[rows], done[rows])
            if marks and not 0 <= at_ms - marks[-1].at_ms <= now_ms - marks[-1].read_ms + self._tuning.off_ms:
                marks.clear()  # the clock of another machine, or of a restarted one
            if not marks or at_ms - marks[-1].at_ms >= self._tuning.shortest_ms:
                marks.append(mark)
                self.at_least[member] = self._did(marks)
                grew, may_grow = self._grew(list(marks), rate[rows])
                if may_grow:
                    suspects.add(member)
                if len(grew) >= self._tuning.intervals:
                    # The member may have begun to fall behind within the oldest interval, and been idle before.
                    counted = grew[:-1] or grew
                    records, seconds = (sum(column) for column in zip(*counted, strict=True))
                    behind[member] = self._paced(records, seconds)._replace(intervals=len(grew))
        self.suspects = frozenset(suspects)
        self._grew_ms |= dict.fromkeys(suspects, now_ms)
        return behind

    def begin_anew(self) -> None:
        """Drop all marks, because the costs of records have changed."""
        for marks in self._marks.values():
            marks.clear()

    def grew(self, members: Sequence[str], now_ms: int) -> Bools:
        """Return bool[M]: members with a backlog that grew lately."""
        after_ms = now_ms - self._tuning.lately_ms
        return np.array([self._grew_ms.get(member, after_ms) > after_ms for member in members], bool)

    def _grew(self, marks: Sequence[_Mark], rate: Floats) -> tuple[list[tuple[float, float]], bool]:
        """Return the newest intervals in which a backlog grew, and whether it may have grown in the newest.

        The intervals are in a row: the records processed and the seconds of each, the newest first.
        """
        grew: list[tuple[float, float]] = []
        for before, after in zip(marks[-2::-1], marks[:0:-1], strict=True):
            seconds = (after.at_ms - before.at_ms) / 1000
            between_s = max((after.read_ms - before.read_ms) / 1000, 1e-3)
            came = np.maximum(after.end - before.end, 0.0) / between_s * seconds
            went_on = after.done - before.done
            processed = self._outrun(np.minimum(came, rate * seconds), went_on)
            if processed is None:
                # A rise in a single reading only justifies an early next one: its ends may be wrong.
                return grew, bool(grew) or self._outrun(came, went_on) is not None
            grew.append((processed, seconds))
        return grew, bool(grew)

    def _did(self, marks: Sequence[_Mark]) -> float:
        """Return the least rate of a member over a while, in records/s; 0 if it was not seen for that long."""
        newest = marks[-1]
        before = [mark for mark in marks if newest.at_ms - mark.at_ms >= self._tuning.outdone_ms]
        if not before:
            return 0.0
        seconds = (newest.at_ms - before[-1].at_ms) / 1000
        return self._paced(float((newest.done - before[-1].done).sum()), seconds).least_per_s

    def _outrun(self, came: Floats, went_on: Floats) -> float | None:
        """Return the records that a member processed in an interval if clearly more have arrived; else None."""
        # A partition that stands still while its member makes progress is paused, or the member retries a record.
        counts = (went_on > 0) & ~np.isnan(came)
        arrived, processed = float(came[counts].sum()), float(went_on[counts].sum())
        noise = max(self._tuning.deviations * math.sqrt(arrived), self._tuning.least_part * arrived)
        return processed if arrived - processed > noise else None

    def _paced(self, processed: float, seconds: float) -> Pace:
        per_s = processed / seconds
        error = max(self._tuning.deviations * math.sqrt(processed) / seconds, self._tuning.in_hand * per_s / seconds)
        return Pace(per_s, max(per_s - error, 0.0), per_s + error)
