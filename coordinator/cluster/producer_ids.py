"""Producer ids, none of which is handed out twice. Mirrors Kafka's ``ProducerIdControlManager``, blocks and all."""

from __future__ import annotations

from loadwise.coordinator.cluster.records import ProducerIdsRecord
from loadwise.coordinator.keeper import NOTHING, Keeper

BLOCK_SIZE = 1000
"""Ids that are kept as handed out at a time (``ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE``)."""


class ProducerIds:
    """Gives an id whenever it is called, from ``first`` on."""

    def __init__(self, first: int, keeper: Keeper = NOTHING) -> None:
        self._next = first
        self._kept_to = first
        self._keeper = keeper

    def __call__(self) -> int:
        """An id that was never given out."""
        if self._next >= self._kept_to:
            self._kept_to = self._next + BLOCK_SIZE
            record = self.record()
            self._keeper.put(record.place, record)
        given = self._next
        self._next += 1
        return given

    def record(self) -> ProducerIdsRecord:
        """All ids below this one may be in use."""
        return ProducerIdsRecord(next_id=self._kept_to)

    def load(self, record: ProducerIdsRecord) -> None:
        """Go on behind what another one may have handed out, and behind what this one has."""
        self._next = self._kept_to = max(self._kept_to, record.next_id)
