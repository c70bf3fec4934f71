"""Whether a producer may write here in its transaction: asked before a partition or a group takes anything.

Mirrors Kafka's ``AddPartitionsToTxnManager`` and how ``ReplicaManager`` translates its errors (KIP-890). A
client of transaction.version 2 adds partitions by writing to them; older ones have to have added them before.
"""

from __future__ import annotations

from enum import IntEnum

from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.transactions.coordinator import Transactions
from loadwise.coordinator.transactions.outcomes import ProducerAt
from loadwise.protocol.error_codes import ErrorCode


class Verification(IntEnum):
    """What the version of a client's request lets it do (``TransactionSupportedOperation``)."""

    OLD = 0
    """The partition must have been added; INVALID_TXN_STATE if it was not."""
    ABORTABLE = 1
    """The partition must have been added; TRANSACTION_ABORTABLE if it was not."""
    ADDS = 2
    """Writing adds the partition."""

    @classmethod
    def of(cls, version: int, first_that_adds: int) -> Verification:
        """Of a version of Produce or TxnOffsetCommit; the version before the one that adds is the abortable one."""
        return cls(max(cls.OLD, min(cls.ADDS, version - first_that_adds + cls.ADDS)))


def verified(
    transactions: Transactions,
    transactional_id: str,
    producer: ProducerAt,
    partition: Partition,
    *,
    kind: Verification,
    now_ms: int,
) -> ErrorCode:
    """NONE where the producer may write to the partition now."""
    if kind is Verification.ADDS:
        error = transactions.add_partitions(transactional_id, producer, {partition}, now_ms)
    else:
        error = transactions.check_partition(transactional_id, producer, partition)
    match error:
        case ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        case ErrorCode.TRANSACTION_ABORTABLE if kind is Verification.OLD:
            return ErrorCode.INVALID_TXN_STATE
        case ErrorCode.CONCURRENT_TRANSACTIONS if kind is not Verification.ADDS:
            return ErrorCode.NOT_ENOUGH_REPLICAS  # which older clients try again
    return error
