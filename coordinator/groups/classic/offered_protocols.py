"""Which assignment protocols all members of a classic group offer. Mirrors ``ClassicGroup.supportedProtocols``.

Counted as members come and go: looking through everybody at each join would grow with the square of the members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from loadwise.coordinator.groups.events import Protocol


class OfferedProtocols:
    """How many members offer each protocol."""

    def __init__(self) -> None:
        self._members = 0
        self._offers: Counter[str] = Counter()

    def add(self, protocols: Iterable[Protocol]) -> None:
        """A member offers these."""
        self._members += 1
        self._offers.update({name for name, _ in protocols})

    def remove(self, protocols: Iterable[Protocol]) -> None:
        """A member that offered these is gone, or offers others now."""
        self._members -= 1
        for name in {name for name, _ in protocols}:
            self._offers[name] -= 1
            if not self._offers[name]:
                del self._offers[name]

    @property
    def common(self) -> set[str]:
        """Those that every member offers."""
        return {name for name, members in self._offers.items() if members == self._members}

    def is_common(self, name: str) -> bool:
        """Whether every member offers a protocol."""
        return self._offers.get(name, 0) == self._members
