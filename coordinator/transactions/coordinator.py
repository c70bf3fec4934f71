"""All transactional ids: who may write in which transaction, when a transaction ends, and what is to be written then.

Mirrors Kafka's ``TransactionCoordinator`` and ``TransactionStateManager``. No I/O and no clock: what is to be written
comes out as `Markers`, and their writer calls `Transactions.complete`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set

from loadwise.coordinator.groups.deadlines import Deadlines
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.keeper import NOTHING, Keeper
from loadwise.coordinator.transactions.limits import TransactionLimits
from loadwise.coordinator.transactions.outcomes import NO_PRODUCER_ID, Markers, ProducerAt, TransactionOutcome
from loadwise.coordinator.transactions.transaction import Transaction, TransactionState
from loadwise.protocol.error_codes import ErrorCode


class Transactions:
    """All transactional ids. ``new_producer_id`` returns an id that was never given out."""

    def __init__(
        self,
        new_producer_id: Callable[[], int],
        limits: TransactionLimits | None = None,
        keeper: Keeper = NOTHING,
    ) -> None:
        self._keeper = keeper
        self.limits = limits or TransactionLimits()
        self._new_producer_id = new_producer_id
        self._by_id: dict[str, Transaction] = {}
        self._deadlines: Deadlines[str] = Deadlines()

    @property
    def all(self) -> Mapping[str, Transaction]:
        """Every transactional id with where it stands."""
        return self._by_id

    @property
    def next_deadline_ms(self) -> int | None:
        """When `expire` is due at the latest; None while nothing can happen by time alone."""
        return self._deadlines.next_ms

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: ProducerAt | None, now_ms: int
    ) -> TransactionOutcome:
        """Give a producer its id and epoch, and shut out the one before it.

        A transaction under way is aborted first: the markers come with CONCURRENT_TRANSACTIONS, and the producer asks
        again.
        """
        if not transactional_id:
            return TransactionOutcome(error=ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self.limits.max_timeout_ms:
            return TransactionOutcome(error=ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        now = self._by_id.get(transactional_id)
        if now is None and len(self._by_id) >= self.limits.max_ids:
            return TransactionOutcome(error=ErrorCode.POLICY_VIOLATION)
        if now is None:
            now = Transaction(
                transactional_id=transactional_id,
                producer_id=self._new_producer_id(),
                timeout_ms=timeout_ms,
                updated_ms=now_ms,
            )
        error = now.init_error(expected)
        if error is not ErrorCode.NONE:
            return TransactionOutcome(error=error)
        if now.state is TransactionState.ONGOING:
            fenced = self.put(now.fenced(now_ms))
            return TransactionOutcome(error=ErrorCode.CONCURRENT_TRANSACTIONS, markers=fenced.markers)
        new_producer_id = self._new_producer_id() if now.needs_new_producer_id(expected) else NO_PRODUCER_ID
        ready = self.put(now.initialized(expected, timeout_ms, now_ms, new_producer_id=new_producer_id))
        return TransactionOutcome(producer=ready.producer)

    def add_partitions(
        self, transactional_id: str, producer: ProducerAt, partitions: Set[Partition], now_ms: int
    ) -> ErrorCode:
        """Let a producer write to some partitions in its transaction, which begins with the first."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        now = self._by_id.get(transactional_id)
        error = ErrorCode.INVALID_PRODUCER_ID_MAPPING if now is None else now.writer_error(producer)
        if now is not None and error is ErrorCode.NONE:
            self.put(now.with_partitions(partitions, now_ms))
        return error

    def check_partition(self, transactional_id: str, producer: ProducerAt, partition: Partition) -> ErrorCode:
        """Whether a producer may write to a partition: TRANSACTION_ABORTABLE if it was never added."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        now = self._by_id.get(transactional_id)
        error = ErrorCode.INVALID_PRODUCER_ID_MAPPING if now is None else now.writer_error(producer)
        if now is not None and error is ErrorCode.NONE and partition not in now.partitions:
            return ErrorCode.TRANSACTION_ABORTABLE
        return error

    def end(
        self, transactional_id: str, producer: ProducerAt, *, committed: bool, bumps_epoch: bool, now_ms: int
    ) -> TransactionOutcome:
        """End a producer's transaction; ``bumps_epoch`` as in `Transaction.end_outcome`.

        The producer of the outcome is the one to go on with, for clients of KIP-890.
        """
        if not transactional_id:
            return TransactionOutcome(error=ErrorCode.INVALID_REQUEST)
        now = self._by_id.get(transactional_id)
        if now is None:
            return TransactionOutcome(error=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        outcome = now.end_outcome(producer, committed=committed, bumps_epoch=bumps_epoch)
        if outcome is not None:
            return outcome
        new_producer_id = self._new_producer_id() if bumps_epoch and now.is_exhausted else NO_PRODUCER_ID
        ending = self.put(
            now.ended(committed=committed, bumps_epoch=bumps_epoch, new_producer_id=new_producer_id, now_ms=now_ms)
        )
        return TransactionOutcome(producer=ending.completed(now_ms).producer, markers=ending.markers)

    def complete(self, transactional_id: str, now_ms: int) -> None:
        """All markers are written that `end`, `init_producer_id` or `expire` asked for."""
        self.put(self._by_id[transactional_id].completed(now_ms))

    def expire(self, now_ms: int) -> list[Markers]:
        """Abort transactions that took too long, and forget ids that were not used for long."""
        due = []
        for transactional_id in self._deadlines.due(now_ms):
            now = self._by_id[transactional_id]
            if now.state is TransactionState.ONGOING:
                due.append(self.put(now.fenced(now_ms)).markers)
            else:
                del self._by_id[transactional_id]
                self._keeper.drop(now.place)
        return due

    def put(self, transaction: Transaction) -> Transaction:
        """Keep where a transactional id stands now."""
        self._keeper.put(transaction.place, transaction)
        return self._take(transaction)

    def load(self, transactions: Iterable[Transaction]) -> None:
        """Have these transactional ids. Those whose markers are still to be written are `unfinished`."""
        for transaction in transactions:
            self._take(transaction)

    @property
    def unfinished(self) -> list[Markers]:
        """The markers that are still to be written; call `complete` after that."""
        return [each.markers for each in self._by_id.values() if each.state.is_ending]

    def _take(self, transaction: Transaction) -> Transaction:
        self._by_id[transaction.transactional_id] = transaction
        deadline_ms: int | None = transaction.updated_ms + self.limits.id_expiration_ms
        if transaction.state is TransactionState.ONGOING:
            deadline_ms = transaction.started_ms + transaction.timeout_ms
        elif transaction.state.is_ending:
            deadline_ms = None
        self._deadlines.set(transaction.transactional_id, deadline_ms)
        return transaction
