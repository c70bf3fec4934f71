"""The stream of the second act: records arrive all the time, and after a while the hot keys are others. Pure.

The hot partitions of the second phase are two that range and round robin both give to the same member of three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PARTITIONS = 12
HOT = (0, 3)
_HOT_SHARE = 0.4
"""The share of all records that each hot partition gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """How many records have arrived in each partition at any moment."""

    rate_per_s: float
    """Records that arrive in a second, in all partitions together."""
    shift_s: float
    """When the hot keys move, in seconds since the stream began."""

    def until(self, at_s: float) -> list[int]:
        """Records of each partition that have arrived by then."""
        before_s, after_s = min(at_s, self.shift_s), max(at_s - self.shift_s, 0.0)
        return [
            int(self.rate_per_s * (before * before_s + after * after_s))
            for before, after in zip(self._before, self._after, strict=True)
        ]

    @property
    def _before(self) -> Sequence[float]:
        return [1 / PARTITIONS] * PARTITIONS

    @property
    def _after(self) -> Sequence[float]:
        rest = (1 - _HOT_SHARE * len(HOT)) / (PARTITIONS - len(HOT))
        return [_HOT_SHARE if number in HOT else rest for number in range(PARTITIONS)]
