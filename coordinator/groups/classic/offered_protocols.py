"""The protocols that all members of a classic group support.

Mirrors ``ClassicGroup.supportedProtocols``. Counts are updated as members join and leave, because checking all members
at each join would be quadratic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from loadwise.coordinator.groups.events import Protocol


class OfferedProtocols:
    """How many times members offer each protocol.

    As in Kafka, a member that names a protocol twice counts twice, so that the protocol is not common.
    """

    def __init__(self) -> None:
        self._members = 0
        self._offers: Counter[str] = Counter()
        self._offering: Counter[str] = Counter()
        """The number of members that offer each."""

    def add(self, protocols: Iterable[Protocol]) -> None:
        """Count the protocols of a member."""
        self._members += 1
        names = [name for name, _ in protocols]
        self._offers.update(names)
        self._offering.update(set(names))

    def remove(self, protocols: Iterable[Protocol]) -> None:
        """Remove the protocols of a member that left or changed."""
        self._members -= 1
        names = [name for name, _ in protocols]
        for counts, gone in ((self._offers, names), (self._offering, set(names))):
            counts.subtract(gone)
            for name in set(names):
                if not counts[name]:
                    del counts[name]

    @property
    def common(self) -> set[str]:
        """Return the protocols that every member supports.

        If members name all of them twice, Kafka never answers; here those count that each member names at all.
        """
        common = {name for name, offers in self._offers.items() if offers == self._members}
        return common or {name for name, members in self._offering.items() if members == self._members}

    def is_common(self, name: str) -> bool:
        """Return whether every member supports a protocol, and names it once."""
        return self._offers.get(name, 0) == self._members
