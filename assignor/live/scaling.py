"""The number of members that a group should have, for a scaler: it rises at once and falls after a calm while."""

from __future__ import annotations

import heapq
import math
from collections import deque

import numpy as np

from loadwise.assignor.live.capacity import Capacities
from loadwise.assignor.live.tuning import ScalingTuning
from loadwise.assignor.model import Floats

_ROUNDING = 1e-9


def members_that_do(load: Floats, per_s: Floats, healthy: float) -> int:
    """Return the fewest members at or below the utilisation ``healthy``: the present ones, and more like the median.

    ``load`` is float64[P], the demand without NaN; ``per_s`` is float64[M]. Partitions are packed, the largest first,
    because members cannot share one; with more members than partitions with a demand, some would be idle.
    """
    busy = load[load > 0]
    if not len(busy) or not len(per_s):
        return 1
    each = float(np.median(per_s))
    # A partition that is too much for any member takes up one member.
    shares = np.sort(np.minimum(busy / (each * max(healthy, 1e-3)), 1.0))[::-1].tolist()
    equal = max(math.ceil(math.fsum(shares) - _ROUNDING), 1)
    while not _fits(shares, equal):
        equal += 1
    # Members that are faster or slower than the median count as more or less than one.
    unequal = len(per_s) - float(per_s.sum()) / each
    return min(max(math.ceil(equal + unequal - _ROUNDING), 1), len(busy))


def members_missing(rate: Floats, capacities: Capacities, healthy: float) -> int:
    """Return the number of members that a group lacks for this rate of each partition; 0 if that is unknown."""
    per_s = capacities.per_s
    if not capacities.known or not capacities.proven.all() or float(rate.sum()) <= per_s.sum():
        return 0
    return max(members_that_do(rate, per_s, healthy) - len(per_s), 0)


class MembersMissing:
    """The number of members that a group lacks, once it has lacked some for a while: a burst is shorter."""

    def __init__(self, tuning: ScalingTuning) -> None:
        self._tuning = tuning
        self._since_ms: int | None = None

    def update(self, missing: int, now_ms: int) -> int:
        """Return ``missing``, as of `members_missing`; 0 unless the readings before show some, too."""
        if not missing:
            self._since_ms = None
        elif self._since_ms is None:
            self._since_ms = now_ms
        held = self._since_ms is not None and now_ms - self._since_ms >= 1000 * self._tuning.missing_for_s
        return missing if held else 0


def _fits(shares: list[float], members: int) -> bool:
    """Return whether no member exceeds 1 if each share, the largest first, goes to the least loaded member."""
    if members >= len(shares) or math.fsum(shares) / members + shares[0] <= 1:
        return True
    least = [0.0] * members
    return all(heapq.heapreplace(least, least[0] + share) + share <= 1 + _ROUNDING for share in shares)


class MembersWanted:
    """The number of members for a scaler. It does not flap: see `ScalingTuning`."""

    def __init__(self, tuning: ScalingTuning) -> None:
        self._tuning = tuning
        self._last: tuple[int, int] | None = None  # the time of the last `update`, and the members that sufficed then
        self._recent: deque[tuple[int, int]] = deque()
        """Times and wanted members of the calm while, without those before a larger or equal number."""
        self._since_ms = 0
        self.newest: int | None = None  # the newest result; None if unknown

    def update(self, load: Floats, per_s: Floats, healthy: float, now_ms: int) -> int:
        """Return the number of wanted members after a reading; arguments as of `members_that_do`."""
        tuning, members = self._tuning, len(per_s)
        if self._last is None or now_ms - self._last[0] > tuning.longest_gap_s * 1000:
            self._recent.clear()
            self._since_ms, self._last = now_ms, None
        do = members_that_do(load, per_s, healthy)
        before = members if self._last is None else self._last[1]
        self._last = now_ms, do
        if do > members:
            wanted = max(min(do, before), members)
        else:
            wanted = min(members_that_do(load, per_s, healthy * tuning.spare), members)
        while self._recent and self._recent[-1][1] <= wanted:
            self._recent.pop()
        self._recent.append((now_ms, wanted))
        while now_ms - self._recent[0][0] > tuning.down_after_s * 1000:
            self._recent.popleft()
        is_new = now_ms - self._since_ms < tuning.down_after_s * 1000
        self.newest = max(self._recent[0][1], members if is_new else 1)
        return self.newest
