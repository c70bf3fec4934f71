"""The earliest of many deadlines, by key.

The server's one timer is set to the earliest. A deadline that moves back, like a session's with every heartbeat, does
not touch the heap. It gets its new place only when its old one is due.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """The earliest of many deadlines; each key's may be moved or cleared at any time."""

    def __init__(self) -> None:
        self._at_ms: dict[K, int] = {}
        self._placed_ms: dict[K, int] = {}
        """The place of each key in the heap, at or before its deadline; other entries are skipped."""
        self._heap: list[tuple[int, int, K]] = []
        self._count = 0

    def set(self, key: K, at_ms: int | None) -> None:
        """Set or move the deadline of a key; None clears it. O(1) to move it back, O(log n) to move it forward."""
        if at_ms is None:
            if self._at_ms.pop(key, None) is not None and not self._at_ms:
                self._heap.clear()
                self._placed_ms.clear()
            return
        self._at_ms[key] = at_ms
        placed_ms = self._placed_ms.get(key)
        if placed_ms is None or at_ms < placed_ms:
            self._place(key, at_ms)

    def postpone(self, key: K, at_ms: int) -> bool:
        """Move a deadline back, which keeps `next_ms`. False without a deadline, or with a later one. O(1)."""
        before_ms = self._at_ms.get(key)
        if before_ms is None or before_ms > at_ms:
            return False
        self._at_ms[key] = at_ms
        return True

    def at(self, key: K) -> int | None:
        """Return the deadline of a key; None if it has none."""
        return self._at_ms.get(key)

    def __contains__(self, key: K) -> bool:
        return key in self._at_ms

    def __len__(self) -> int:
        return len(self._at_ms)

    @property
    def next_ms(self) -> int | None:
        """Return a time at or before the earliest deadline; None without deadlines."""
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> list[K]:
        """Remove and return the keys that are due, earliest first."""
        keys: list[K] = []
        while self._heap and self._heap[0][0] <= now_ms:
            placed_ms, _, key = heapq.heappop(self._heap)
            if self._placed_ms.get(key) != placed_ms:
                continue
            del self._placed_ms[key]
            at_ms = self._at_ms.get(key)
            if at_ms is None:
                continue
            if at_ms > placed_ms:
                self._place(key, at_ms)
            else:
                del self._at_ms[key]
                keys.append(key)
        if not self._at_ms:
            self._heap.clear()
            self._placed_ms.clear()
        return keys

    def _place(self, key: K, at_ms: int) -> None:
        self._placed_ms[key] = at_ms
        self._count += 1  # breaks ties, because keys need not be comparable
        heapq.heappush(self._heap, (at_ms, self._count, key))
        if len(self._heap) > 64 + 2 * len(self._at_ms):
            self._rebuild()

    def _rebuild(self) -> None:
        self._placed_ms = dict(self._at_ms)
        self._heap = [(at_ms, order, key) for order, (key, at_ms) in enumerate(self._at_ms.items())]
        self._count = len(self._heap)
        heapq.heapify(self._heap)
