"""Records that a share group has begun to deliver: batches, each of one state, or of one state a record.

Mirrors Kafka's ``InFlightBatch`` and ``InFlightState``. A batch is told apart record by record as soon as a part of it
is treated differently, and stays so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

NOBODY = ""
"""The owner of records that are not acquired."""


class RecordState(IntEnum):
    """What a record is to the group, with Kafka's numbers."""

    AVAILABLE = 0
    """It waits to be delivered."""
    ACQUIRED = 1
    """A member has it, until it acknowledges it or its lock ends."""
    ACKNOWLEDGED = 2
    """It was processed."""
    ARCHIVED = 4
    """It is not delivered any more: it was rejected or was delivered too often, or it is no record."""

    @property
    def is_final(self) -> bool:
        """Whether the record is never delivered again."""
        return self in {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}


@dataclass(slots=True)
class Delivery:
    """How far the delivery of a record, or of some that are treated alike, has come."""

    state: RecordState
    count: int
    """How often it was delivered."""
    member_id: str = NOBODY
    """Who has acquired it."""
    locked_until_ms: int | None = None
    """When its member loses it; None while nobody has it."""

    def acquire(self, member_id: str, locked_until_ms: int) -> None:
        """Deliver it to a member once more."""
        self.state, self.count = RecordState.ACQUIRED, self.count + 1
        self.member_id, self.locked_until_ms = member_id, locked_until_ms

    def settle(self, state: RecordState) -> None:
        """Take it from its member."""
        self.state, self.member_id, self.locked_until_ms = state, NOBODY, None


class Unit(NamedTuple):
    """Records next to each other that have one delivery."""

    first: int
    last: int
    delivery: Delivery


class InFlightBatch:
    """Records next to each other that were acquired together the first time."""

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
        """The delivery of all its records; None if they are told apart."""
        return self._whole

    def split(self) -> None:
        """Tell its records apart from now on. O(its records)."""
        if self._whole is not None:
            self._each = [replace(self._whole) for _ in range(len(self))]
            self._whole = None

    def units(self, first: int | None = None, last: int | None = None) -> Iterator[Unit]:
        """Its deliveries in order; where its records are told apart, only those from ``first`` to ``last``."""
        if self._whole is not None:
            yield Unit(self.first, self.last, self._whole)
            return
        start = self.first if first is None else max(first, self.first)
        stop = self.last if last is None else min(last, self.last)
        for offset in range(start, stop + 1):
            yield Unit(offset, offset, self._each[offset - self.first])
