"""A bounded processing rate: a token bucket under a clock that the caller reads."""

from __future__ import annotations


class TokenBucket:
    """Grants ``rate_per_s`` records a second, and no more than ``burst`` at once after a pause."""

    def __init__(self, rate_per_s: float, burst: float, now_s: float) -> None:
        self.rate_per_s = rate_per_s
        self.burst = burst
        self._tokens = 0.0
        self._at_s = now_s

    def available(self, now_s: float) -> int:
        """How many records may be processed now."""
        self._tokens = min(self.burst, self._tokens + (now_s - self._at_s) * self.rate_per_s)
        self._at_s = now_s
        return int(self._tokens)

    def take(self, records: int) -> None:
        """Account for records that were processed; more than was available is paid back by waiting longer."""
        self._tokens -= records

    def wait_s(self, records: int) -> float:
        """Seconds from the last look until this many are available; 0 if they are. Never above what a burst takes."""
        return max(0.0, (min(records, self.burst) - self._tokens) / self.rate_per_s)
