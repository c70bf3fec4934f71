"""Sequence numbers of idempotent producers, for one partition.

Mirrors Kafka's ``ProducerAppendInfo`` and ``ProducerStateEntry``.

The last five batches of each producer are remembered, since it may have as many in flight: a repeated one is answered
with the offset that it got, a gap with OUT_OF_ORDER_SEQUENCE_NUMBER.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from loadwise.protocol.batches import BatchHeader
from loadwise.protocol.error_codes import ErrorCode

REMEMBERED_BATCHES = 5
"""How many batches of a producer are remembered (``ProducerStateEntry.NUM_BATCHES_TO_RETAIN``)."""

NO_PRODUCER_ID = -1
_SEQUENCES = 2**31


class Verdict(NamedTuple):
    """What the sequence numbers say of a batch."""

    error: ErrorCode = ErrorCode.NONE
    known_offset: int | None = None
    """Base offset of the same batch if it is here already; None if it is new."""
    message: str | None = None


class _Batch(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: int


@dataclass(slots=True)
class _Producer:
    epoch: int
    batches: deque[_Batch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))


class ProducerStates:
    """What one partition knows of the producers that wrote to it."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def check(self, header: BatchHeader, base_offset: int) -> Verdict:
        """Judge a batch; one that is new is remembered as standing at ``base_offset``."""
        if header.producer_id == NO_PRODUCER_ID:
            return Verdict()
        if header.base_sequence < 0 or header.producer_id < 0 or header.producer_epoch < 0:
            return Verdict(ErrorCode.INVALID_RECORD, message="an idempotent batch needs an epoch and a sequence number")
        first = header.base_sequence
        last = (first + header.last_offset_delta) % _SEQUENCES
        producer = self._producers.get(header.producer_id)
        if producer is not None and header.producer_epoch < producer.epoch:
            message = f"producer epoch {header.producer_epoch} is older than {producer.epoch}"
            return Verdict(ErrorCode.INVALID_PRODUCER_EPOCH, message=message)
        if producer is None or header.producer_epoch > producer.epoch:
            if producer is not None and first != 0:
                message = f"sequence {first} comes first in epoch {header.producer_epoch}; it must be 0"
                return Verdict(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message=message)
            producer = self._producers[header.producer_id] = _Producer(header.producer_epoch)
        else:
            for batch in producer.batches:
                if (batch.first_sequence, batch.last_sequence) == (first, last):
                    return Verdict(known_offset=batch.base_offset)
            expected = (producer.batches[-1].last_sequence + 1) % _SEQUENCES
            if first != expected:
                message = f"sequence {first} came where {expected} was next"
                return Verdict(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message=message)
        producer.batches.append(_Batch(first, last, base_offset))
        return Verdict()
