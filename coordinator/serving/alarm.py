"""Calls back at a time of the coordinator's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from loadwise.coordinator.clock import Clock


class Alarm:
    """One timer of the event loop, for the earliest deadline."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self._set_to_ms: int | None = None

    def set(self, deadline_ms: int | None) -> None:
        """Ring at the deadline, or earlier; then it is set again. A frozen clock reaches no later deadline."""
        now_ms = self._clock.now_ms()
        if (
            deadline_ms is None
            or (self._set_to_ms is not None and self._set_to_ms <= deadline_ms)
            or (self._clock.is_frozen and deadline_ms > now_ms)
        ):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._set_to_ms = deadline_ms
        # A loop's clock is finer than milliseconds, so wait slightly longer to be past the deadline.
        delay_ms = deadline_ms + 1 - now_ms
        self._timer = asyncio.get_running_loop().call_later(max(delay_ms, 0) / 1000, self._rings)

    def clear(self) -> None:
        """Do not ring."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._set_to_ms = None

    def _rings(self) -> None:
        self._timer = self._set_to_ms = None
        self._ring()
