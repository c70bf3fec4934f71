"""Sequence numbers and epochs of idempotent and transactional producers, for one partition.

Mirrors Kafka's ``ProducerAppendInfo`` and ``ProducerStateEntry``.

The last five batches of each producer are remembered, since it may have as many in flight: a repeated one is answered
with the offset that it got, a gap with OUT_OF_ORDER_SEQUENCE_NUMBER.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from loadwise.coordinator.cluster.records import ProducedBatch, ProducerRecord
from loadwise.protocol.batches import BatchHeader
from loadwise.protocol.error_codes import ErrorCode

REMEMBERED_BATCHES = 5
"""How many batches of a producer are remembered (``ProducerStateEntry.NUM_BATCHES_TO_RETAIN``)."""

NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
NO_COORDINATOR_EPOCH = -1
_SEQUENCES = 2**31


class ProducerCheck(NamedTuple):
    """The verdict of a partition's producers on a batch."""

    error: ErrorCode = ErrorCode.NONE
    known: ProducedBatch | None = None
    """The same batch if it is here already; None if it is new."""
    message: str | None = None


@dataclass(slots=True)
class Producer:
    """What is remembered of one producer."""

    epoch: int
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    """Epoch of the transaction coordinator that wrote its last marker."""
    last_timestamp_ms: int = -1
    """The largest timestamp of its last batch, in milliseconds since 1970."""
    batches: deque[ProducedBatch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))

    @property
    def last_sequence(self) -> int:
        """The sequence number of its last record; `NO_SEQUENCE` if it has written none in its epoch."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class ProducerStates:
    """What one partition knows of the producers that wrote to it."""

    def __init__(self, records: Iterable[ProducerRecord] = ()) -> None:
        self._producers: dict[int, Producer] = {
            each.producer_id: Producer(
                each.epoch,
                each.coordinator_epoch,
                each.last_timestamp_ms,
                deque(each.batches, maxlen=REMEMBERED_BATCHES),
            )
            for each in records
        }

    @property
    def known(self) -> Mapping[int, Producer]:
        """The producers by id."""
        return self._producers

    def records(self) -> Sequence[ProducerRecord]:
        """What rebuilds it."""
        return [
            ProducerRecord(
                producer_id=producer_id,
                epoch=each.epoch,
                coordinator_epoch=each.coordinator_epoch,
                last_timestamp_ms=each.last_timestamp_ms,
                batches=tuple(each.batches),
            )
            for producer_id, each in self._producers.items()
        ]

    def check(self, header: BatchHeader, *, begins_at_zero: bool = False) -> ProducerCheck:
        """Judge a producer's batch; nothing is remembered until `remember`.

        ``begins_at_zero``: a producer that is not known here has to begin with sequence 0 (transactions of KIP-890).
        """
        if header.producer_id == NO_PRODUCER_ID:
            return ProducerCheck()
        if header.base_sequence < 0 or header.producer_id < 0 or header.producer_epoch < 0:
            return ProducerCheck(
                ErrorCode.INVALID_RECORD, message="an idempotent batch needs an epoch and a sequence number"
            )
        first, last = _sequences(header)
        producer = self._producers.get(header.producer_id)
        if producer is None:
            if begins_at_zero and first != 0:
                return _out_of_order(f"sequence {first} comes first of this producer; it must be 0")
            return ProducerCheck()
        if header.producer_epoch < producer.epoch:
            message = f"producer epoch {header.producer_epoch} is older than {producer.epoch}"
            return ProducerCheck(ErrorCode.INVALID_PRODUCER_EPOCH, message=message)
        if header.producer_epoch > producer.epoch:
            if first != 0:
                return _out_of_order(f"sequence {first} comes first in epoch {header.producer_epoch}; it must be 0")
            return ProducerCheck()
        for batch in producer.batches:
            if (batch.first_sequence, batch.last_sequence) == (first, last):
                return ProducerCheck(known=batch)
        expected = (producer.last_sequence + 1) % _SEQUENCES
        if first != expected:
            return _out_of_order(f"sequence {first} came where {expected} was next")
        return ProducerCheck()

    def remember(self, header: BatchHeader, base_offset: int) -> None:
        """A batch that `check` has nothing against stands at ``base_offset`` now."""
        if header.producer_id == NO_PRODUCER_ID:
            return
        producer = self._in_epoch(header.producer_id, header.producer_epoch)
        producer.batches.append(ProducedBatch(*_sequences(header), base_offset, header.max_timestamp))
        producer.last_timestamp_ms = header.max_timestamp

    def expire(self, before_ms: int, in_transaction: Container[int]) -> bool:
        """Forget producers without records since a time, by the timestamps of records; True if there was one.

        A producer whose transaction is open stays (``ProducerStateManager.isProducerExpired``).
        """
        silent = [
            producer_id
            for producer_id, each in self._producers.items()
            if each.last_timestamp_ms <= before_ms and producer_id not in in_transaction
        ]
        for producer_id in silent:
            del self._producers[producer_id]
        return bool(silent)

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, *, bumps_epoch: bool = False
    ) -> ProducerCheck:
        """Judge the marker that ends a producer's transaction; ``bumps_epoch``: in an epoch that is new (KIP-890)."""
        producer = self._producers.get(producer_id)
        if producer is not None and epoch < producer.epoch + bumps_epoch:
            message = f"producer epoch {epoch} of a marker is too old: the producer wrote in epoch {producer.epoch}"
            return ProducerCheck(ErrorCode.INVALID_PRODUCER_EPOCH, message=message)
        if producer is not None and coordinator_epoch < producer.coordinator_epoch:
            message = f"coordinator epoch {coordinator_epoch} of a marker is older than {producer.coordinator_epoch}"
            return ProducerCheck(ErrorCode.TRANSACTION_COORDINATOR_FENCED, message=message)
        return ProducerCheck()

    def remember_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, timestamp_ms: int) -> None:
        """A marker that `check_marker` has nothing against was written."""
        producer = self._in_epoch(producer_id, epoch)
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp_ms = timestamp_ms

    def _in_epoch(self, producer_id: int, epoch: int) -> Producer:
        producer = self._producers.setdefault(producer_id, Producer(epoch))
        if producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches.clear()
        return producer


def _sequences(header: BatchHeader) -> tuple[int, int]:
    return header.base_sequence, (header.base_sequence + header.last_offset_delta) % _SEQUENCES


def _out_of_order(message: str) -> ProducerCheck:
    return ProducerCheck(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message=message)
