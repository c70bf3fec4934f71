"""kafka-python's consumer with our assignors.

All hooks run on the client's I/O thread, which also sends heartbeats: they do no I/O and do not block. An exception in
a hook leaves ``poll()`` and is retried forever, so no data of another member may raise here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack
from weakref import WeakMethod, finalize

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol

from loadwise.assignor.clients.commit_notes import with_note
from loadwise.assignor.clients.factory import BalancedConsumer, ClientKind, ConsumerPlan, Options, plan
from loadwise.assignor.clients.held_polls import polled_alone
from loadwise.assignor.clients.kafka_python.lag import KafkaPythonLag
from loadwise.assignor.clients.kafka_python.stock import KafkaConsumer
from loadwise.assignor.clients.kafka_python.version import TRIED
from loadwise.assignor.clients.plug import ClientAssignor
from loadwise.assignor.clients.records import Advances
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.load.lag import LoadOfLag
from loadwise.assignor.load.source import LoadSource
from loadwise.assignor.model import Assignor
from loadwise.assignor.participant import Participant
from loadwise.assignor.strategy import AssignorChoice, Cooperative, Strategy
from loadwise.assignor.subscription import JoinedMember
from loadwise.protocol.consumer import Subscription

if TYPE_CHECKING:
    from kafka.structs import OffsetAndMetadata, TopicPartition

FIRST_READING_S = 5.0
"""How long a new consumer with the user's own load waits for the group's lag before it joins without."""


class KafkaPythonAssignor(ClientAssignor, AbstractPartitionAssignor):
    """One of our assignors for ``partition_assignment_strategy=[...]``. Each consumer needs its own object."""

    replicas = "replica_nodes"

    def __init__(self, participant: Participant, strategy: Strategy | None = None) -> None:
        super().__init__(participant, strategy)
        self.generation: int | None = None
        """The newest generation that the consumer joined, if it provides it."""
        self._held: Callable[[], Callable[[], Iterable[tuple[str, int]]] | None] | None = None

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Eager or cooperative, depending on all of the member's assignors."""
        return [RebalanceProtocol.COOPERATIVE if self.participant.cooperative else RebalanceProtocol.EAGER]

    def on_assignment(self, assignment: Any, generation: int) -> None:
        """Store the assignment for the next join."""
        self._assigned(assignment.assigned_partitions, generation, assignment.user_data)

    def follow(self, consumer: KafkaConsumer) -> None:
        """Read the owned partitions from the consumer, to which only a weak reference is kept."""
        self._held = WeakMethod(consumer.assignment)

    def _held_partitions(self) -> Iterable[tuple[str, int]] | None:
        held = None if self._held is None else self._held()
        return None if held is None else held()

    def _joined_generation(self) -> int | None:
        return self.generation

    def _read(self, members: Iterable[Any]) -> list[JoinedMember]:
        return [_joined(member) for member in members]


def assignor(
    name: str | Assignor | Cooperative = "weighted",
    *,
    capacity: float | None = None,
    rack: str | None = None,
    load: LoadSource | None = None,
) -> KafkaPythonAssignor:
    """Make an assignor for one consumer's ``partition_assignment_strategy``.

    ``name`` is range, roundrobin, sticky, cooperative-sticky, weighted or cooperative-weighted, or an object with
    parameters, such as ``Weighted(epsilon=0.02)``. ``rack`` is the consumer's ``client_rack``. ``capacity`` and
    ``load`` are for weighted: the member's capacity relative to the others, and the source of the partitions' loads.
    Without a load, it balances the number of partitions.

    Raises `UnknownAssignorError` and `BadGroupError`.
    """
    return KafkaPythonAssignor(Participant(name, capacity=capacity, rack=rack, load=load))


def kafka_python_consumer(
    *topics: str,
    group_id: str,
    assignor: AssignorChoice = "weighted",
    capacity: float | None = None,
    load: LoadSource | LoadOfLag | None = None,
    lag_interval_s: float = 5.0,
    live: LiveSettings | bool | None = None,
    on_decision: Callable[[Decision], None] | None = None,
    **config: Any,
) -> KafkaPythonConsumer:
    """Return a ``KafkaConsumer`` whose group uses one of loadwise's assignors.

    A broker must answer within 9 seconds, or within ``bootstrap_timeout_ms``. Otherwise ``KafkaTimeoutError`` names the
    cause.

    Raises what `assignor` and ``KafkaConsumer`` raise, and `TypeError` or `ValueError` that names a bad argument.

    Args:
        topics: The topics to subscribe to.
        group_id: The consumer group.
        assignor: A name, an assignor object, or a list in order of preference, such as ``["weighted", "range"]``
            during an upgrade. The group uses the first name that all members have. One eager name makes this member
            eager.
        capacity: How fast this member is, relative to the other members. By default it is learned.
        load: What ``weighted`` balances: a load source, or a function that turns the group's lag into one. By default
            it is the group's demand, that is, the arrivals and the backlog of each partition. With another load, except
            a `PolledLoad`, no rebalance is requested, and ``live`` and ``on_decision`` are refused.
        lag_interval_s: The seconds between two readings of the offsets, by the leader, with the client's own settings.
        live: When the leader requests a rebalance for the load; False means never.
        on_decision: Is called with each decision of the leader, in a separate thread.
        config: All keyword arguments of ``KafkaConsumer`` except ``partition_assignment_strategy``.

    """
    options = Options(
        assignor=assignor,
        capacity=capacity,
        load=load,
        lag_interval_s=lag_interval_s,
        live=live,
        on_decision=on_decision,
    )
    return KafkaPythonConsumer(plan(_CLIENT, TRIED, topics, config, group_id=group_id, **options))


_CLIENT = ClientKind(
    factory="kafka_python_consumer",
    arguments=frozenset(KafkaConsumer.DEFAULT_CONFIG),
    assignor=KafkaPythonAssignor,
    lag=KafkaPythonLag,
)


def planned(settings: Mapping[str, Any], **options: Unpack[Options]) -> ConsumerPlan[KafkaPythonLag]:
    """Check the arguments of a consumer that subscribes later, and choose its assignor; nothing connects yet."""
    config = dict(settings)
    return plan(_CLIENT, TRIED, (), config, group_id=config.pop("group_id"), **options)


class KafkaPythonConsumer(BalancedConsumer, KafkaConsumer):
    """A ``KafkaConsumer`` with our assignors and our fixes of its private classes: see `kafka_python_consumer`."""

    def __init__(self, plan: ConsumerPlan[KafkaPythonLag]) -> None:
        self._plan = plan
        self._lag = plan.lag
        self._leader = plan.participant.leader
        self._advances = Advances()
        config = dict(plan.config)
        if TRIED.includes_installed:
            from loadwise.assignor.clients.kafka_python import logins  # noqa: PLC0415 (as below)

            config.setdefault("kafka_client", logins.client_that_tells)
            config.setdefault("bootstrap_timeout_ms", logins.BOOTSTRAP_TIMEOUT_MS)
        super().__init__(*plan.topics, partition_assignment_strategy=plan.plugs, **config)
        for plug in plan.plugs:
            plug.follow(self)
        if TRIED.includes_installed:
            from loadwise.assignor.clients.kafka_python.internals import repair  # noqa: PLC0415 (other versions lack it)

            repair(self, self._leader, self._lag)
        else:
            TRIED.warn(
                "joins that outlast a poll are lost, a cooperative rebalance stops all partitions, and the group's load"
                " is not watched"
            )
        if self._lag is not None:
            finalize(self, self._lag.stop)  # a consumer that is dropped without close() must not leak our thread
            self._lag.start(at_once=plan.waits_for_lag)
            if plan.waits_for_lag:
                self._lag.wait(FIRST_READING_S)

    def poll(
        self, timeout_ms: float = 0, max_records: int | None = None, update_offsets: bool = True
    ) -> dict[TopicPartition, list[Any]]:
        """Fetch records, and measure how long the application works on them.

        If the program commits by hand, an eager rebalance may take up to 10 seconds longer than the timeout.
        """
        self._coordinator.polled_alone = polled_alone(self)
        if self._leader is None:
            return super().poll(timeout_ms, max_records, update_offsets)
        busy = self._leader.busy
        busy.polls(time.monotonic_ns())
        records = super().poll(timeout_ms, max_records, update_offsets)
        busy.given(self._advances.of(records), time.monotonic_ns())
        return records

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None, timeout_ms: float | None = None
    ) -> None:
        """Commit as the client does, also while an eager rebalance waits for other members."""
        self._coordinator.commits_by_hand = True
        super().commit(offsets, timeout_ms)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        callback: Callable[[Mapping[TopicPartition, OffsetAndMetadata], Any], object] | None = None,
    ) -> Any:
        """Commit as the client does, also while an eager rebalance waits for other members."""
        self._coordinator.commits_by_hand = True
        return super().commit_async(offsets, callback)

    def committed(self, partition: TopicPartition, metadata: bool = False, timeout_ms: float | None = None) -> Any:
        """Return the committed offset with the user's own metadata, without our notes."""
        found = super().committed(partition, metadata, timeout_ms)
        return with_note({0: found}, "")[0] if hasattr(found, "metadata") else found

    def subscribe(
        self, topics: Iterable[str] = (), pattern: str | re.Pattern[str] | None = None, listener: Any = None
    ) -> None:
        """Subscribe. With the user's own load, wait for the lag of these topics before joining."""
        super().subscribe(topics, pattern, listener)
        self._read_lag(self.subscription() or (), pattern)
        if self._lag is not None and self._plan.waits_for_lag:
            self._lag.wait(FIRST_READING_S)

    def close(self, autocommit: bool = True, timeout_ms: float | None = None) -> None:
        """Close the consumer and its lag reader."""
        try:
            super().close(autocommit, timeout_ms)
        finally:
            if self._lag is not None:
                self._lag.close()
            self._plan.participant.close()


def _joined(member: Any) -> JoinedMember:
    metadata = member.metadata
    return JoinedMember(
        id=member.member_id,
        instance_id=member.group_instance_id,
        subscription=Subscription(
            topics=metadata.topics,
            user_data=metadata.user_data,
            owned={owned.topic: owned.partitions for owned in metadata.owned_partitions or ()},
            generation=metadata.generation_id,
            rack=metadata.rack_id,
        ),
    )
