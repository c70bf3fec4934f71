"""All deadlines of the coordinator in one heap, so that one timer serves them."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """The earliest of many deadlines, each under a key that may be set anew or cleared at any time."""

    def __init__(self) -> None:
        self._at_ms: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []  # may hold entries that were set anew: those are skipped
        self._count = 0

    def set(self, key: K, at_ms: int | None) -> None:
        """Set or move the deadline of a key; None clears it. O(log n)."""
        if at_ms is None:
            self._at_ms.pop(key, None)
        elif self._at_ms.get(key) != at_ms:
            self._at_ms[key] = at_ms
            self._count += 1  # decides between equal times, since keys need not compare
            heapq.heappush(self._heap, (at_ms, self._count, key))
            if len(self._heap) > 64 + 2 * len(self._at_ms):
                self._rebuild()

    def at(self, key: K) -> int | None:
        """The deadline of a key; None if it has none."""
        return self._at_ms.get(key)

    def __contains__(self, key: K) -> bool:
        return key in self._at_ms

    def __len__(self) -> int:
        return len(self._at_ms)

    @property
    def next_ms(self) -> int | None:
        """The earliest deadline; None if there is none."""
        self._skip_stale()
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> list[K]:
        """Take out the keys whose time has come, earliest first."""
        keys: list[K] = []
        while True:
            self._skip_stale()
            if not self._heap or self._heap[0][0] > now_ms:
                return keys
            _, _, key = heapq.heappop(self._heap)
            del self._at_ms[key]
            keys.append(key)

    def _skip_stale(self) -> None:
        while self._heap and self._at_ms.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)

    def _rebuild(self) -> None:
        self._heap = [(at_ms, order, key) for order, (key, at_ms) in enumerate(self._at_ms.items())]
        self._count = len(self._heap)
        heapq.heapify(self._heap)
