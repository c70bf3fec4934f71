"""One transactional id: its producer, its epoch and its transaction. Pure: every change makes a new value.

Mirrors Kafka's ``TransactionMetadata`` and ``TransactionState`` and what ``TransactionCoordinator`` checks before it
changes them (KIP-98; epochs that grow with every transaction: KIP-890; recovery with the present epoch: KIP-360). A
value is all that has to be kept of a transactional id over a restart.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from enum import StrEnum

from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.keeper import Forked, Place
from loadwise.coordinator.transactions.outcomes import NO_EPOCH, NO_PRODUCER_ID, Markers, ProducerAt, TransactionOutcome
from loadwise.protocol.error_codes import ErrorCode

LAST_EPOCH = 2**15 - 2
"""The last epoch that a producer gets; the one behind it only fences, and a new producer id follows."""

_NEVER_STARTED = -1


class TransactionState(StrEnum):
    """Where a transactional id stands, by Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"

    @property
    def is_ending(self) -> bool:
        """Whether markers are still being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_complete(self) -> bool:
        """Whether the last transaction has ended."""
        return self in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction(Forked):
    """A transactional id and the last transaction under it."""

    transactional_id: str
    producer_id: int
    epoch: int = NO_EPOCH
    """`NO_EPOCH` until the first InitProducerId has taken effect."""
    last_epoch: int = NO_EPOCH
    """The epoch before this one, for a producer that repeats a request whose answer it did not get."""
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id that follows when this transaction is complete, as its epochs are used up."""
    timeout_ms: int
    """How long a transaction may take."""
    state: TransactionState = TransactionState.EMPTY
    partitions: Set[Partition] = frozenset()
    started_ms: int = _NEVER_STARTED
    """When the transaction began; -1 if there was none yet."""
    updated_ms: int
    """When the state last changed."""
    bumps_epoch: bool = False
    """Whether the last transaction was ended by a client of KIP-890, or by the coordinator."""

    forked_epoch: int = NO_EPOCH
    """The epoch that it had in a snapshot, which was put back; `NO_EPOCH` if that never happened, or is past.

    Later epochs of this producer id may have been handed out before that, so that a new producer id follows."""

    @property
    def place(self) -> Place:
        """Where it is kept."""
        return ("transaction", self.transactional_id)

    @property
    def producer(self) -> ProducerAt:
        """The producer id with its epoch."""
        return ProducerAt(self.producer_id, self.epoch)

    @property
    def is_exhausted(self) -> bool:
        """Whether no further epoch of the producer id can be handed out."""
        return self.epoch >= LAST_EPOCH or self.forked_epoch != NO_EPOCH

    def forked(self) -> Transaction:
        """As it is put back from a snapshot."""
        return replace(self, forked_epoch=self.epoch)

    # ---- InitProducerId ----

    def init_error(self, expected: ProducerAt | None) -> ErrorCode:
        """Whether a producer may be initialized again; ``expected`` is the id and epoch that it sends, or None."""
        if expected is not None and self.epoch != NO_EPOCH and expected.producer_id != self.producer_id:
            follows = expected.producer_id == self.previous_producer_id and expected.epoch >= LAST_EPOCH
            if not follows:
                return ErrorCode.PRODUCER_FENCED
        if self.state.is_ending:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        is_known = expected is None or self.epoch == NO_EPOCH or expected.epoch in (self.epoch, self.last_epoch)
        if self.state is not TransactionState.ONGOING and not is_known:
            return ErrorCode.PRODUCER_FENCED
        return ErrorCode.NONE

    def needs_new_producer_id(self, expected: ProducerAt | None) -> bool:
        """Whether `initialized` needs a producer id that is new."""
        was_given = self.epoch <= LAST_EPOCH and self.forked_epoch in (NO_EPOCH, self.epoch)
        return self.is_exhausted and (not was_given or expected is None or expected.epoch == self.epoch)

    def initialized(
        self, expected: ProducerAt | None, timeout_ms: int, now_ms: int, *, new_producer_id: int
    ) -> Transaction:
        """After an InitProducerId that `init_error` has nothing against, with no transaction under way."""
        producer_id, epoch, last_epoch = self.producer_id, self.epoch + 1, NO_EPOCH
        if self.needs_new_producer_id(expected):
            producer_id, epoch = new_producer_id, 0
            last_epoch = NO_EPOCH if expected is None else self.epoch
        elif expected is not None and self.epoch not in (NO_EPOCH, expected.epoch):
            epoch, last_epoch = self.epoch, self.last_epoch  # its answer got lost, and it asks again
        elif expected is not None:
            last_epoch = self.epoch
        return replace(
            self,
            producer_id=producer_id,
            epoch=epoch,
            last_epoch=last_epoch,
            previous_producer_id=self.producer_id,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            partitions=frozenset(),
            started_ms=_NEVER_STARTED,
            updated_ms=now_ms,
            bumps_epoch=False,
            forked_epoch=self.forked_epoch if producer_id == self.producer_id else NO_EPOCH,
        )

    # ---- partitions ----

    def writer_error(self, producer: ProducerAt) -> ErrorCode:
        """Whether this producer may add partitions now."""
        if producer.producer_id != self.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if producer.epoch != self.epoch:
            return ErrorCode.PRODUCER_FENCED
        return ErrorCode.CONCURRENT_TRANSACTIONS if self.state.is_ending else ErrorCode.NONE

    def with_partitions(self, added: Set[Partition], now_ms: int) -> Transaction:
        """With some partitions more; a transaction begins with the first."""
        is_ongoing = self.state is TransactionState.ONGOING
        if is_ongoing and added <= self.partitions:
            return self
        return replace(
            self,
            state=TransactionState.ONGOING,
            partitions=frozenset(self.partitions | added),
            started_ms=self.started_ms if is_ongoing else now_ms,
            updated_ms=now_ms,
            bumps_epoch=False,
        )

    # ---- EndTxn ----

    def is_retry(self, producer: ProducerAt) -> bool:
        """Whether a client of KIP-890 repeats an EndTxn that took effect: it comes with the epoch before.

        Mirrors ``retryOnEpochBump`` and ``retryOnOverflow``, which do not ask how the transaction was ended.
        """
        if not (self.state.is_ending or self.state.is_complete):
            return False
        rotated = self.epoch == 0 and producer == (self.previous_producer_id, self.last_epoch - 1)
        return rotated or (producer.producer_id == self.producer_id and producer.epoch + 1 == self.epoch)

    def end_outcome(self, producer: ProducerAt, *, committed: bool, bumps_epoch: bool) -> TransactionOutcome | None:
        """What an EndTxn is answered that changes nothing; None if the transaction is to be `ended`.

        ``bumps_epoch``: the client knows KIP-890, by which each transaction has an epoch of its own.
        """
        is_retry = bumps_epoch and self.is_retry(producer)
        if producer.producer_id != self.producer_id and not is_retry:
            return TransactionOutcome(error=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        must_be_retry = bumps_epoch and self.state.is_ending
        if not is_retry and (must_be_retry or producer.epoch != self.epoch):
            return TransactionOutcome(error=ErrorCode.PRODUCER_FENCED)
        refused = TransactionOutcome(error=ErrorCode.INVALID_TXN_STATE)
        match self.state:
            case TransactionState.ONGOING:
                return None
            case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT:
                is_same = committed == (self.state is TransactionState.PREPARE_COMMIT)
                return TransactionOutcome(error=ErrorCode.CONCURRENT_TRANSACTIONS) if is_same else refused
            case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT:
                is_same = committed == (self.state is TransactionState.COMPLETE_COMMIT)
                if is_same and (is_retry or not bumps_epoch):
                    return TransactionOutcome(producer=self.producer)
        # KIP-890 lets a client abort when nothing was written, to get an epoch that is its own.
        return None if bumps_epoch and not committed and not is_retry else refused

    def ended(self, *, committed: bool, bumps_epoch: bool, new_producer_id: int, now_ms: int) -> Transaction:
        """While the markers are being written; ``new_producer_id`` follows where the epochs are used up."""
        is_ongoing = self.state is TransactionState.ONGOING
        return replace(
            self,
            state=TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT,
            epoch=self.epoch + 1 if bumps_epoch else self.epoch,
            last_epoch=self.epoch if bumps_epoch else self.last_epoch,
            next_producer_id=new_producer_id if bumps_epoch and self.is_exhausted else NO_PRODUCER_ID,
            started_ms=self.started_ms if is_ongoing else now_ms,
            updated_ms=now_ms,
            bumps_epoch=bumps_epoch,
        )

    def fenced(self, now_ms: int) -> Transaction:
        """While the markers of an abort are being written that the coordinator decided on: its producer is shut out."""
        return self.ended(committed=False, bumps_epoch=True, new_producer_id=NO_PRODUCER_ID, now_ms=now_ms)

    @property
    def markers(self) -> Markers:
        """What is to be written to end it."""
        committed = self.state is TransactionState.PREPARE_COMMIT
        return Markers(
            transactional_id=self.transactional_id,
            producer=self.producer,
            committed=committed,
            partitions=self.partitions,
        )

    def completed(self, now_ms: int) -> Transaction:
        """When all markers are written."""
        committed = self.state is TransactionState.PREPARE_COMMIT
        done = replace(
            self,
            state=TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT,
            partitions=frozenset(),
            previous_producer_id=self.producer_id,
            updated_ms=now_ms,
        )
        if self.next_producer_id == NO_PRODUCER_ID:
            return done
        return replace(
            done,
            producer_id=self.next_producer_id,
            epoch=0,
            last_epoch=self.epoch,
            next_producer_id=NO_PRODUCER_ID,
            forked_epoch=NO_EPOCH,
        )
