"""When a lag reader reads the switch of its group, and when it renews the note."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from loadwise.protocol.live_switch import LiveSwitch, newest

log = logging.getLogger(__name__)

_EVERY_S = 30.0
_RENEWED_AFTER_MS = 24 * 3_600_000
"""Brokers keep commits for a week, or as long as offsets.retention.minutes says."""

_Partition = TypeVar("_Partition", bound=tuple[str, int])


class SwitchReader:
    """The newest note of one group, as its lag reader finds it."""

    def __init__(self, group_id: str, listener: Callable[[bool], None]) -> None:
        self._group_id, self._listener = group_id, listener
        self._read_s, self._failing = -math.inf, False

    def due(self, now_s: float) -> bool:
        """Return whether to read the notes now, by a monotonic clock; it is then due half a minute later."""
        due = now_s - self._read_s >= _EVERY_S
        self._read_s = now_s if due else self._read_s
        return due

    def read(
        self, notes: Mapping[_Partition, tuple[int, str]], now_ms: int
    ) -> tuple[_Partition, int, LiveSwitch] | None:
        """Take in offset and metadata of each partition; return what to commit so that brokers keep the note."""
        self._failing = False
        switch = newest(metadata for _, metadata in notes.values())
        self._listener(switch is not None and switch.off)
        if switch is None or now_ms - switch.written_ms < _RENEWED_AFTER_MS:
            return None
        partition = next(each for each, (_, metadata) in notes.items() if LiveSwitch.decode(metadata) == switch)
        return partition, notes[partition][0], LiveSwitch(switch.since_ms, switch.off, now_ms)

    def failed(self, error: Exception) -> None:
        """Log once that the notes cannot be read; the last one stays in force."""
        if not self._failing:
            log.warning(
                "The switch of group %s cannot be read (%r), so `loadwise live off` has no effect. Members need the"
                " rights DESCRIBE and READ on the group %s.loadwise",
                self._group_id,
                error,
                self._group_id,
            )
        self._failing = True
