"""Fetches that wait for more bytes. Mirrors Kafka's ``DelayedFetch`` and its purgatory, keyed by partition."""

from __future__ import annotations

from dataclasses import dataclass

from loadwise.coordinator.calls import Answer, Call, DelayedFetch
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.groups.events import Token
from loadwise.coordinator.waits import Waits


@dataclass(slots=True)
class _Waiting:
    call: Call
    fetch: DelayedFetch
    missing_bytes: int


class DelayedFetches:
    """Fetches that found too little, each until enough has come or its time is up."""

    def __init__(self) -> None:
        self._waits: Waits[_Waiting] = Waits()
        self._completed: list[Token] = []

    def __len__(self) -> int:
        return len(self._waits)

    @property
    def next_deadline_ms(self) -> int | None:
        """When a fetch has to be answered with what there is; None if none waits."""
        return self._waits.next_deadline_ms

    def delay(self, call: Call, fetch: DelayedFetch, now_ms: int) -> None:
        """Let a fetch wait until enough bytes have come, or its time is up."""
        self._waits.add(call.token, _Waiting(call, fetch, fetch.missing_bytes), fetch.logs, now_ms + fetch.max_wait_ms)

    def grown(self, log: PartitionLog, size_bytes: int, stable_bytes: int) -> None:
        """Note that a log grew by so many bytes, and by so many as a reader of committed records sees it."""
        for token, waiting in self._waits.of(log):
            if waiting.missing_bytes > 0:
                waiting.missing_bytes -= stable_bytes if waiting.fetch.committed_only else size_bytes
                if waiting.missing_bytes <= 0:
                    self._completed.append(token)

    def gone(self, log: PartitionLog) -> None:
        """Note that a log was deleted: who waits for it is to be told."""
        for token, waiting in self._waits.of(log):
            if waiting.missing_bytes > 0:
                waiting.missing_bytes = 0
                self._completed.append(token)

    def hurry(self, token: Token) -> None:
        """Let a fetch be answered with what there is."""
        self._completed.append(token)

    def take_completed(self, now_ms: int) -> list[Answer]:
        """Take out the fetches that are to be answered now, with their answers."""
        tokens, self._completed = self._completed, []
        tokens += self._waits.due(now_ms)
        found = [self._waits.pop(token) for token in tokens]
        return [Answer(waiting.call, waiting.fetch.respond()) for waiting in found if waiting is not None]

    def forget(self, token: Token) -> None:
        """Drop a fetch whose client is gone; others are passed over."""
        self._waits.pop(token)
