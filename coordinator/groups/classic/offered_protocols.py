"""The protocols that all members of a classic group support.

Mirrors ``ClassicGroup.supportedProtocols``. Counts are updated as members join and leave, because checking all members
at each join would be quadratic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from loadwise.coordinator.groups.events import Protocol


class OfferedProtocols:
    """The number of members that support each protocol."""

    def __init__(self) -> None:
        self._members = 0
        self._offers: Counter[str] = Counter()

    def add(self, protocols: Iterable[Protocol]) -> None:
        """Count the protocols of a member."""
        self._members += 1
        self._offers.update({name for name, _ in protocols})

    def remove(self, protocols: Iterable[Protocol]) -> None:
        """Remove the protocols of a member that left or changed."""
        self._members -= 1
        for name in {name for name, _ in protocols}:
            self._offers[name] -= 1
            if not self._offers[name]:
                del self._offers[name]

    @property
    def common(self) -> set[str]:
        """Return the protocols that every member supports."""
        return {name for name, members in self._offers.items() if members == self._members}

    def is_common(self, name: str) -> bool:
        """Return whether every member supports a protocol."""
        return self._offers.get(name, 0) == self._members
