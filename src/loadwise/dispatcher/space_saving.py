"""The heaviest keys of a stream in bounded memory (Metwally et al., ICDT 2005)."""

from __future__ import annotations

from heapq import heapify, heapreplace


class SpaceSaving:
    """Counts the keys that are worth it: a key with more than ``total / capacity`` is always among them.

    A count is at most ``total / capacity`` too high and never too low. Keys are any numbers, such as hashes.
    """

    def __init__(self, capacity: int) -> None:
        self.total = 0.0
        """The sum of all that was added."""
        self._capacity = capacity
        self._counts: dict[int, float] = {}
        self._least: list[tuple[float, int]] = []
        """A heap of the same keys. A key's count may have grown since."""

    def add(self, key: int, amount: float) -> float:
        """Add to the count of a key, and return it."""
        self.total += amount
        counts = self._counts
        count = counts.get(key)
        if count is not None:
            count += amount
        elif len(counts) < self._capacity:
            count = amount
            self._least.append((count, key))
            if len(counts) + 1 == self._capacity:
                heapify(self._least)
        else:
            count = self._replace(key, amount)
        counts[key] = count
        return count

    def halve(self) -> None:
        """Halve all counts, so that what was hot long ago does not stay so."""
        self.total /= 2
        self._counts = {key: count / 2 for key, count in self._counts.items()}
        self._least = [(count, key) for key, count in self._counts.items()]
        heapify(self._least)

    def _replace(self, key: int, amount: float) -> float:
        """Give a new key the place and the count of the one with the least."""
        while True:
            known, least = self._least[0]
            count = self._counts[least]
            if count == known:
                break
            heapreplace(self._least, (count, least))
        del self._counts[least]
        heapreplace(self._least, (count + amount, key))
        return count + amount
