"""What the transaction coordinator answers, and what it wants written."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import NamedTuple

from loadwise.coordinator.groups.partitions import Partition
from loadwise.protocol.error_codes import ErrorCode

NO_PRODUCER_ID = -1
NO_EPOCH = -1


class ProducerAt(NamedTuple):
    """A producer id with an epoch."""

    producer_id: int
    epoch: int


NO_PRODUCER = ProducerAt(NO_PRODUCER_ID, NO_EPOCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Markers:
    """The markers that end a transaction, one for each of its partitions."""

    transactional_id: str
    producer: ProducerAt
    """Under which id and epoch they are written."""
    committed: bool
    partitions: Set[Partition]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionOutcome:
    """The answer to a producer, and what else is to be done."""

    error: ErrorCode = ErrorCode.NONE
    producer: ProducerAt = NO_PRODUCER
    """The producer's id and epoch from now on; `NO_PRODUCER` with an error."""
    markers: Markers | None = None
    """To be written; `Transactions.complete` is to be called then."""
