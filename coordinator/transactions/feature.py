"""The transactions of one cluster: who may write, and the markers that end them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from loadwise.coordinator.calls.call import Answer, Call, Later
from loadwise.coordinator.calls.refusal_shapes import BY_INDEX, PARTITIONS, Refused, Rows
from loadwise.coordinator.cluster.brokers import CONSUMER_OFFSETS, TRANSACTION_STATE
from loadwise.coordinator.feature import Feature
from loadwise.coordinator.groups.events import Token
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.keeper import Place, Snapshot
from loadwise.coordinator.transactions import limits
from loadwise.coordinator.transactions.coordinator import Transactions
from loadwise.coordinator.transactions.limits import TransactionLimits
from loadwise.coordinator.transactions.outcomes import Markers, ProducerAt
from loadwise.coordinator.transactions.transaction import Transaction
from loadwise.coordinator.transactions.verification import Verification, verified
from loadwise.coordinator.turns import Turns, advance, whole
from loadwise.protocol.batches import BatchHeader
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.structs import Struct

_COORDINATOR_EPOCH = 0
"""The epoch of every transaction coordinator, which its markers contain."""
_ADDS_PARTITIONS = 12
"""The version of Produce that adds a partition to the transaction."""


S = TypeVar("S", bound=Struct)


@dataclass(slots=True)
class _Ending:
    """A transaction that ends; more markers are to be written than one turn has time for."""

    turns: Turns[None]
    answer: Answer | None = None
    """For the client that waits for the end; None without one."""

    def is_over_after_a_turn(self) -> bool:
        """Write markers for one turn; return whether these were the last."""
        try:
            advance(self.turns)
        except StopIteration:
            return True
        return False


class ClusterTransactions(Feature):
    """The transactional ids of a cluster, in its partitions and groups."""

    flags: ClassVar[Mapping[str, tuple[int, int]]] = {"transaction.version": (0, 2)}
    settings = limits.SETTINGS
    refusals: ClassVar[Mapping[str, Refused]] = {
        "AddPartitionsToTxn": Refused(
            [
                Rows(
                    "results_by_topic_v3_and_below",
                    "v3_and_below_topics",
                    inner=Rows("results_by_partition", "partitions", "partition_index"),
                    versions=range(4),
                )
            ]
        ),
        "DescribeTransactions": Refused([Rows("transaction_states", "transactional_ids", "transactional_id")]),
        "TxnOffsetCommit": Refused([Rows("topics", "topics", inner=PARTITIONS)]),
        "WriteTxnMarkers": Refused([Rows("markers", "markers", inner=Rows("topics", "topics", inner=BY_INDEX))]),
    }

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ending: deque[_Ending] = deque()
        self._ready: list[Answer] = []
        self.ids = Transactions(cluster.new_producer_id, cluster.settings.limits_of(TransactionLimits), cluster.keeper)

    @classmethod
    def kinds(cls) -> Mapping[str, type]:
        """Return the kinds of values that it keeps, by their names in a data directory."""
        return {"transaction": Transaction}

    def load(self, state: Snapshot) -> None:
        """Load the ids, and write the markers that are missing."""
        self.ids.load(state.of(Transaction))
        self._ending.clear()
        self._ready.clear()
        for markers in self.ids.unfinished:
            whole(self._written(markers))

    def values(self) -> Iterable[tuple[Place, object]]:
        """Return all ids."""
        return ((each.place, each) for each in self.ids.all.values())

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when the next transaction times out, or id expires."""
        return self.ids.next_deadline_ms

    def expire(self, now_ms: int) -> None:
        """Abort the transactions that took too long."""
        every = (_Ending(self._written(markers)) for markers in self.ids.expire(now_ms))
        self._ending.extend(ending for ending in every if not ending.is_over_after_a_turn())

    @property
    def has_unfinished(self) -> bool:
        """Return whether markers of transactions that end are to be written."""
        return bool(self._ending)

    def go_on(self) -> None:
        """Write some of the markers of the transaction that began to end first."""
        ending = self._ending[0]
        if ending.is_over_after_a_turn():
            self._ending.popleft()
            if ending.answer is not None:
                self._ready.append(ending.answer)

    def take_answers(self, now_ms: int) -> Iterable[Answer]:  # noqa: ARG002
        """Return the answers to calls whose transactions have ended."""
        ready, self._ready = self._ready, []
        return ready

    def forget(self, token: Token) -> None:
        """Drop the answer to a client that has disconnected; its transaction ends all the same."""
        for ending in self._ending:
            if ending.answer is not None and ending.answer.call.token == token:
                ending.answer = None

    def produce_error(self, call: Call, topic: str, partition: int, header: BatchHeader) -> ErrorCode:
        """Return whether the producer may write to the partition; it may add it."""
        return verified(
            self.ids,
            call.body.transactional_id,
            ProducerAt(header.producer_id, header.producer_epoch),
            Partition(topic, partition),
            kind=Verification.of(call.version, _ADDS_PARTITIONS),
            now_ms=self._cluster.now_ms,
        )

    def is_coordinator(self, call: Call, transactional_id: str) -> bool:
        """Return whether the call's broker coordinates an id; if not, answer NOT_COORDINATOR."""
        return self._cluster.brokers.coordinates(call.node_id, transactional_id, TRANSACTION_STATE)

    def ended(self, call: Call, markers: Markers | None, response: S) -> S | Later:
        """Write the markers that end a transaction; the response follows once all of them are written."""
        if markers is None:
            return response
        ending = _Ending(self._written(markers), Answer(call, response))
        if ending.is_over_after_a_turn():
            return response
        self._ending.append(ending)
        return Later()

    def _written(self, markers: Markers) -> Turns[None]:
        """End a transaction in all its partitions and groups; deleted partitions are skipped."""
        cluster = self._cluster
        producer_id, epoch = markers.producer
        for partition in markers.partitions:
            yield
            if partition.topic == CONSUMER_OFFSETS:
                yield from cluster.groups.end_transaction(producer_id, partition.number, committed=markers.committed)
                continue
            log = cluster.topics.log(*partition)
            if log is not None:
                appended = log.end_transaction(
                    producer_id,
                    epoch,
                    committed=markers.committed,
                    coordinator_epoch=_COORDINATOR_EPOCH,
                    timestamp_ms=cluster.now_ms,
                )
                cluster.grown(log, appended)
        self.ids.complete(markers.transactional_id, cluster.now_ms)


FEATURE = ClusterTransactions
