"""Producer ids, each handed out only once. Mirrors Kafka's ``ProducerIdControlManager``, including its blocks."""

from __future__ import annotations

from loadwise.coordinator.cluster.records import ProducerIdsRecord
from loadwise.coordinator.keeper import NOTHING, Keeper

BLOCK_SIZE = 1000
"""The number of ids that are reserved at a time (``ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE``)."""


class ProducerIds:
    """Returns a new id each time it is called, starting at ``first``."""

    def __init__(self, first: int, keeper: Keeper = NOTHING) -> None:
        self._next = first
        self._kept_to = first
        self._keeper = keeper

    def __call__(self) -> int:
        """Return an id that was never handed out before."""
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
        """Continue after all ids that the saved record covers, and after those of this object."""
        self._next = self._kept_to = max(self._kept_to, record.next_id)
