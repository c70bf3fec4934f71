"""The coordinator's clock. Tests may freeze it and set it forward, never back."""

from __future__ import annotations

from collections.abc import Callable


class Clock:
    """A millisecond clock that never goes back, based on ``source_ms``."""

    def __init__(self, source_ms: Callable[[], int]) -> None:
        self._source_ms = source_ms
        self._ahead_ms = 0
        self._stands_at_ms: int | None = None

    @property
    def is_frozen(self) -> bool:
        """Return whether it is frozen."""
        return self._stands_at_ms is not None

    def now_ms(self) -> int:
        """Return the time."""
        return self._source_ms() + self._ahead_ms if self._stands_at_ms is None else self._stands_at_ms

    def freeze(self) -> None:
        """Stop the clock, if it is not frozen yet."""
        self._stands_at_ms = self.now_ms()

    def resume(self) -> None:
        """Let the clock run on from its current time."""
        if self._stands_at_ms is not None:
            self._ahead_ms = self._stands_at_ms - self._source_ms()
            self._stands_at_ms = None

    def advance_to(self, at_ms: int) -> None:
        """Set the clock forward, frozen or not; a time in the past changes nothing."""
        ahead_ms = at_ms - self.now_ms()
        if ahead_ms <= 0:
            return
        if self._stands_at_ms is None:
            self._ahead_ms += ahead_ms
        else:
            self._stands_at_ms = at_ms
