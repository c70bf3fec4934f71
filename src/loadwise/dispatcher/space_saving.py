"""The heaviest keys of a stream in bounded memory (Metwally et al., ICDT 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heapreplace


@dataclass(slots=True, eq=False)
class Count:
    """What was counted of a key."""

    most: float = 0.0
    """The sum of its amounts at most: since it is counted, and what may have been before."""
    inherited: float = 0.0
    """The part of that that may be other keys'."""
    squares: float = 0.0
    """The sum of the squares of its amounts since it is counted."""

    @property
    def least(self) -> float:
        """Return the sum of its amounts at least."""
        return self.most - self.inherited

    @property
    def additions(self) -> float:
        """Return in how many additions of one size the same would be as certain (Kish's effective sample size)."""
        return self.least**2 / self.squares


class SpaceSaving:
    """Counts the keys that are worth it: a key with more than ``total / capacity`` is always among them.

    The most of a count is at most ``total / capacity`` too high. Keys are any numbers, such as hashes.
    """

    def __init__(self, capacity: int) -> None:
        self.total = 0.0
        """The sum of all that was added."""
        self._capacity = capacity
        self._counts: dict[int, Count] = {}
        self._lightest: list[tuple[float, int]] = []
        """A heap of the same keys. A key's count may have grown since."""

    def add(self, key: int, amount: float) -> Count:
        """Add to the count of a key, and return it."""
        self.total += amount
        count = self._counts.get(key)
        if count is not None:
            count.most += amount
            count.squares += amount * amount
            return count
        if len(self._counts) < self._capacity:
            count = Count(amount, 0.0, amount * amount)
            self._lightest.append((amount, key))
            if len(self._lightest) == self._capacity:
                heapify(self._lightest)
        else:
            inherited = self._drop_lightest()
            count = Count(inherited + amount, inherited, amount * amount)
            heapreplace(self._lightest, (count.most, key))
        self._counts[key] = count
        return count

    def halve(self) -> None:
        """Halve all counts, so that what was hot long ago does not stay so."""
        self.total /= 2
        for count in self._counts.values():
            count.most /= 2
            count.inherited /= 2
            count.squares /= 2
        self._lightest = [(count.most, key) for key, count in self._counts.items()]
        heapify(self._lightest)

    def _drop_lightest(self) -> float:
        """Drop the key with the lowest count, which stays first in the heap, and return that count."""
        while True:
            known, lightest = self._lightest[0]
            most = self._counts[lightest].most
            if most == known:
                del self._counts[lightest]
                return most
            heapreplace(self._lightest, (most, lightest))
