"""The coordinator's clock: it runs with another one, and a test may stop it and set it forward, never back."""

from __future__ import annotations

from collections.abc import Callable


class Clock:
    """Milliseconds that only grow. ``source_ms`` is the clock that it runs with."""

    def __init__(self, source_ms: Callable[[], int]) -> None:
        self._source_ms = source_ms
        self._ahead_ms = 0
        self._stands_at_ms: int | None = None

    @property
    def is_frozen(self) -> bool:
        """Whether it stands still."""
        return self._stands_at_ms is not None

    def now_ms(self) -> int:
        """The time."""
        return self._source_ms() + self._ahead_ms if self._stands_at_ms is None else self._stands_at_ms

    def freeze(self) -> None:
        """Stop it; one that stands still goes on doing so."""
        self._stands_at_ms = self.now_ms()

    def resume(self) -> None:
        """Let it run on from where it stands."""
        if self._stands_at_ms is not None:
            self._ahead_ms = self._stands_at_ms - self._source_ms()
            self._stands_at_ms = None

    def advance_to(self, at_ms: int) -> None:
        """Set it forward, whether it runs or not; a time that is past changes nothing."""
        ahead_ms = at_ms - self.now_ms()
        if ahead_ms <= 0:
            return
        if self._stands_at_ms is None:
            self._ahead_ms += ahead_ms
        else:
            self._stands_at_ms = at_ms
