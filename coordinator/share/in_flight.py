"""Records in delivery to a share group: batches with one state, or with a state per record.

Mirrors Kafka's ``InFlightBatch`` and ``InFlightState``. A batch is split into records as soon as a part of it changes
separately, and stays split.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

NOBODY = ""
"""The owner of records that are not acquired."""


class RecordState(IntEnum):
    """The state of a record in the group, with Kafka's numbers."""

    AVAILABLE = 0
    """Ready to be delivered."""
    ACQUIRED = 1
    """A member has acquired it, until it acknowledges it or the lock expires."""
    ACKNOWLEDGED = 2
    """It was processed."""
    ARCHIVED = 4
    """Not delivered again: it was rejected, reached the delivery limit, or is not a record."""

    @property
    def is_final(self) -> bool:
        """Return whether the record is never delivered again."""
        return self in {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}


@dataclass(slots=True)
class Delivery:
    """The delivery state of a record, or of several that share it."""

    state: RecordState
    count: int
    """How often it was delivered."""
    member_id: str = NOBODY
    """The member that has acquired it."""
    locked_until_ms: int | None = None
    """When the lock expires; None while it is not acquired."""

    def acquire(self, member_id: str, locked_until_ms: int) -> None:
        """Deliver it to a member once more."""
        self.state, self.count = RecordState.ACQUIRED, self.count + 1
        self.member_id, self.locked_until_ms = member_id, locked_until_ms

    def settle(self, state: RecordState) -> None:
        """Remove it from its member and set its state."""
        self.state, self.member_id, self.locked_until_ms = state, NOBODY, None


class Unit(NamedTuple):
    """Consecutive records with one delivery state."""

    first: int
    last: int
    delivery: Delivery


class InFlightBatch:
    """Consecutive records that were acquired together the first time."""

    __slots__ = ("_each", "_whole", "first", "last")

    def __init__(self, first: int, last: int, delivery: Delivery) -> None:
        self.first = first
        """Offset of the first record."""
        self.last = last
        """Offset of the last record."""
        self._whole: Delivery | None = delivery
        self._each: list[Delivery] = []

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def whole(self) -> Delivery | None:
        """Return the delivery state of the batch; None if it is split."""
        return self._whole

    def split(self) -> None:
        """Split the batch, so that each record has its own state. O(its records)."""
        if self._whole is not None:
            self._each = [replace(self._whole) for _ in range(len(self))]
            self._whole = None

    def units(self, first: int | None = None, last: int | None = None) -> Iterator[Unit]:
        """Return its delivery states in order; a split batch only from ``first`` to ``last``."""
        if self._whole is not None:
            yield Unit(self.first, self.last, self._whole)
            return
        start = self.first if first is None else max(first, self.first)
        stop = self.last if last is None else min(last, self.last)
        for offset in range(start, stop + 1):
            yield Unit(offset, offset, self._each[offset - self.first])
