"""The coordinator's clock. Tests may freeze it and set it forward, never back."""

from __future__ import annotations

from collections.abc import Callable


class Clock:
    """A millisecond clock that never goes back. ``source_s`` grows evenly; ``begun_s`` is added to it."""

    def __init__(self, source_s: Callable[[], float], begun_s: float = 0.0) -> None:
        self._source_s = source_s
        self._begun_s = begun_s
        self._ahead_ms = 0
        self._stands_at_ms: int | None = None

    @property
    def is_frozen(self) -> bool:
        """Return whether it is frozen."""
        return self._stands_at_ms is not None

    def now_ms(self) -> int:
        """Return the time."""
        return self._source_ms() + self._ahead_ms if self._stands_at_ms is None else self._stands_at_ms

    def _source_ms(self) -> int:
        return int((self._source_s() + self._begun_s) * 1000)

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
