"""The earliest of many deadlines, by key. The one timer of the server is set to the earliest of all.

A deadline that moves back, as a session's does with every heartbeat, does not touch the heap: its old place is looked
at when its time comes, and only then does it get its new one.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """The earliest of many deadlines, each under a key that may be set anew or cleared at any time."""

    def __init__(self) -> None:
        self._at_ms: dict[K, int] = {}
        self._placed_ms: dict[K, int] = {}
        """Where each key stands in the heap, which is no later than its deadline; what else is there is skipped."""
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
        """Move a deadline back, which changes no `next_ms`. False if there is none, or a later one. O(1)."""
        before_ms = self._at_ms.get(key)
        if before_ms is None or before_ms > at_ms:
            return False
        self._at_ms[key] = at_ms
        return True

    def at(self, key: K) -> int | None:
        """The deadline of a key; None if it has none."""
        return self._at_ms.get(key)

    def __contains__(self, key: K) -> bool:
        return key in self._at_ms

    def __len__(self) -> int:
        return len(self._at_ms)

    @property
    def next_ms(self) -> int | None:
        """When `due` is to be asked at the latest: no deadline is earlier. None if there is none."""
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> list[K]:
        """Take out the keys whose time has come, earliest first."""
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
        self._count += 1  # decides between equal times, since keys need not compare
        heapq.heappush(self._heap, (at_ms, self._count, key))
        if len(self._heap) > 64 + 2 * len(self._at_ms):
            self._rebuild()

    def _rebuild(self) -> None:
        self._placed_ms = dict(self._at_ms)
        self._heap = [(at_ms, order, key) for order, (key, at_ms) in enumerate(self._at_ms.items())]
        self._count = len(self._heap)
        heapq.heapify(self._heap)
