"""Fetches that wait for more bytes. Mirrors Kafka's ``DelayedFetch`` and its purgatory, keyed by partition."""

from __future__ import annotations

from dataclasses import dataclass

from loadwise.coordinator.calls.call import Call, DelayedFetch, Outcome
from loadwise.coordinator.calls.waits import Waits
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.groups.events import Token


@dataclass(slots=True)
class _Waiting:
    call: Call
    fetch: DelayedFetch
    missing_bytes: int


class DelayedFetches(Waits[_Waiting]):
    """Fetches that found too little. Each waits until enough bytes arrive or it times out."""

    def __init__(self) -> None:
        super().__init__()
        self._completed: list[Token] = []

    def delay(self, call: Call, fetch: DelayedFetch, now_ms: int) -> None:
        """Add a fetch that waits for more bytes, up to its deadline."""
        self.add(call.token, _Waiting(call, fetch, fetch.missing_bytes), fetch.logs, now_ms + fetch.max_wait_ms)

    def grown(self, log: PartitionLog, size_bytes: int, stable_bytes: int) -> None:
        """Note that a log grew, by ``stable_bytes`` for readers of committed records."""
        for token, waiting in self.of(log):
            if waiting.missing_bytes > 0:
                waiting.missing_bytes -= stable_bytes if waiting.fetch.committed_only else size_bytes
                if waiting.missing_bytes <= 0:
                    self._completed.append(token)

    def gone(self, log: PartitionLog) -> None:
        """Note that a log was deleted, so that its fetches are answered."""
        for token, waiting in self.of(log):
            if waiting.missing_bytes > 0:
                waiting.missing_bytes = 0
                self._completed.append(token)

    def take_completed(self, now_ms: int) -> list[tuple[Call, Outcome]]:
        """Remove the completed fetches and return what they respond."""
        tokens, self._completed = self._completed, []
        tokens += self.due(now_ms)
        found = [self.pop(token) for token in tokens]
        return [(waiting.call, waiting.fetch.respond()) for waiting in found if waiting is not None]
