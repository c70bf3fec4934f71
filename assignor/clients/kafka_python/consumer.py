"""kafka-python's consumer with our assignors.

All hooks run on the client's I/O thread, which also sends heartbeats: they do no I/O and do not block. An exception in
a hook leaves ``poll()`` and is retried forever, so no data of another member may raise here.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any
from weakref import WeakMethod, finalize

from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol

from loadwise.assignor.clients.arguments import check_arguments
from loadwise.assignor.clients.commit_notes import with_note
from loadwise.assignor.clients.kafka_python.lag import KafkaPythonLag
from loadwise.assignor.clients.kafka_python.version import TRIED
from loadwise.assignor.clients.metadata import ClientMetadata
from loadwise.assignor.clients.records import by_topic
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.load.lag import LoadOfLag, commit_slack_s, load_of, max_poll_s
from loadwise.assignor.load.source import LoadSource
from loadwise.assignor.model import Assignor
from loadwise.assignor.participant import AssignorChoice, Participant
from loadwise.assignor.strategy import Strategy
from loadwise.assignor.subscription import JoinedMember
from loadwise.protocol.consumer import Subscription

__all__ = ["KafkaPythonAssignor", "KafkaPythonLag", "assignor", "kafka_consumer"]

FIRST_READING_S = 5.0
"""How long a new consumer with the user's own load waits for the group's lag before it joins without."""


class KafkaPythonAssignor(AbstractPartitionAssignor):
    """One of our assignors for ``partition_assignment_strategy=[...]``. Each consumer needs its own object."""

    def __init__(self, participant: Participant, strategy: Strategy | None = None) -> None:
        self.participant = participant
        """The member's state and decisions. Its counters have how often it led, and how often without load."""
        self.strategy = participant.strategies[0] if strategy is None else strategy
        """Which of the member's strategies it serves."""
        self.joined: Sequence[JoinedMember] = ()
        """The members in the JoinGroup answer of the current rebalance, if the consumer provides them."""
        self.generation: int | None = None
        """The newest generation that the consumer joined, if it provides it."""
        self._held: Callable[[], Callable[[], Iterable[tuple[str, int]]] | None] | None = None

    @property
    def name(self) -> str:
        """The strategy's name on the wire."""
        return self.strategy.name

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Eager or cooperative, depending on all of the member's strategies."""
        return [RebalanceProtocol.COOPERATIVE if self.participant.cooperative else RebalanceProtocol.EAGER]

    def metadata(self, topics: Iterable[str]) -> bytes:
        """Return the encoded subscription; the client sends bytes as they are."""
        owned = None
        if self.participant.cooperative and self._held is not None and (held := self._held()) is not None:
            owned = _by_topic(held())
        generation = self.generation if self.participant.cooperative else None
        return self.participant.subscription(topics, owned=owned, generation=generation, protocol=self.name)

    def on_assignment(self, assignment: Any, generation: int) -> None:
        """Store the assignment for the next join."""
        partitions = dict(assignment.assigned_partitions)
        self.participant.assigned(partitions, generation, self.name, user_data=assignment.user_data or None)

    def explain(self) -> Decision | None:
        """Return the newest decision about the group's load; None while another member leads."""
        return self.participant.explain()

    def assign(self, cluster: Any, members: Iterable[Any]) -> dict[str, bytes]:
        """As the leader, return every member's assignment; the client sends bytes as they are."""
        joined = self.joined or [_joined(member) for member in members]
        return self.participant.assign(joined, _metadata(cluster), protocol=self.name)

    def resume(self, cluster: Any, described: Sequence[tuple[JoinedMember, Mapping[str, Sequence[int]]]]) -> None:
        """Watch the group again that this member already led before it was restarted."""
        self.participant.resume(described, _metadata(cluster), protocol=self.name)

    def follow(self, consumer: KafkaConsumer) -> None:
        """Read the owned partitions from the consumer, to which only a weak reference is kept."""
        self._held = WeakMethod(consumer.assignment)


def assignor(
    name: str | Assignor = "weighted",
    *,
    cooperative: bool = False,
    capacity: float | None = None,
    rack: str | None = None,
    load: LoadSource | None = None,
) -> KafkaPythonAssignor:
    """Make an assignor for one consumer's ``partition_assignment_strategy``.

    ``name`` is a strategy (range, roundrobin, sticky, cooperative-sticky, weighted, cooperative-weighted) or an
    algorithm with parameters, such as ``Weighted(epsilon=0.02)``. ``cooperative`` selects an algorithm's cooperative
    form. ``rack`` is the consumer's ``client_rack``. ``capacity`` and ``load`` are for the weighted strategies: the
    member's capacity relative to the others, and the source of the partitions' loads. Without a load, they balance the
    number of partitions.

    Raises `UnknownStrategyError` and `BadGroupError`.
    """
    return KafkaPythonAssignor(Participant(name, cooperative=cooperative, capacity=capacity, rack=rack, load=load))


def kafka_consumer(
    *topics: str,
    group_id: str,
    assignor: AssignorChoice = "weighted",
    cooperative: bool = False,
    capacity: float | None = None,
    load: LoadSource | LoadOfLag | None = None,
    lag_interval_s: float = 5.0,
    live: LiveSettings | bool = True,
    on_decision: Callable[[Decision], None] | None = None,
    **config: Any,
) -> KafkaConsumer:
    """Make a ``KafkaConsumer`` whose group uses our strategies.

    ``config`` takes the client's own keyword arguments, except ``partition_assignment_strategy``. ``assignor``,
    ``cooperative``, ``capacity`` and ``load`` are those of `assignor`. ``assignor`` may also be a list in order of
    preference, such as ``["weighted", "range"]`` during an upgrade. The group uses the first name that all members
    have; one eager name makes this member eager.

    Without a ``load``, a weighted strategy uses the group's demand: the arrivals and the backlog of each partition. The
    group's leader reads them every ``lag_interval_s`` with the client's own settings. It measures the members'
    capacities if no ``capacity`` is given, and requests a rebalance if that pays. ``live`` (`LiveSettings`) configures
    when; False: never. ``on_decision`` is called with each decision on the reading thread. ``load`` may also be a
    function of the group's lag, which every member then reads. With the user's own load, no rebalance is requested.

    The consumer is kafka-python's own class; its ``assignor`` is the `KafkaPythonAssignor` of the preferred strategy.

    Raises what `assignor` and ``KafkaConsumer`` raise, and `TypeError` or `ValueError` that names a bad argument.
    """
    check_arguments(group_id, lag_interval_s, config)
    source = load if isinstance(load, LoadSource) else None
    rack = config.get("client_rack")
    participant = Participant(assignor, cooperative=cooperative, capacity=capacity, rack=rack, load=source)
    lag = None
    if participant.load_aware and source is None:
        lag = KafkaPythonLag(*topics, group_id=group_id, interval_s=lag_interval_s, **config)
        if load is None and TRIED.includes_installed:
            times = {"slack_s": commit_slack_s(config), "max_poll_s": max_poll_s(config)}
            participant.lead_by(lag, live, **times, on_decision=on_decision)
        else:
            participant.load = load_of(lag, load)
    consumer = _Consumer(*topics, participant=participant, lag=lag, group_id=group_id, **config)
    if lag is not None:
        lag.start(at_once=participant.leader is None)
        if participant.leader is None:
            lag.wait(FIRST_READING_S)
    return consumer


class _Consumer(KafkaConsumer):
    """A ``KafkaConsumer`` with our assignors and our fixes of the client's private classes."""

    def __init__(self, *topics: str, participant: Participant, lag: KafkaPythonLag | None, **config: Any) -> None:
        plugs = [KafkaPythonAssignor(participant, strategy) for strategy in participant.strategies]
        self.assignor = plugs[0]
        self._lag = lag
        self._leader = participant.leader
        super().__init__(*topics, partition_assignment_strategy=plugs, **config)
        for plug in plugs:
            plug.follow(self)
        if TRIED.includes_installed:
            from loadwise.assignor.clients.kafka_python.internals import repair  # noqa: PLC0415 (other versions lack it)

            repair(self, self._leader, lag)
        else:
            TRIED.warn(
                "joins that outlast a poll are lost, a cooperative rebalance stops all partitions, and the group's load"
                " is not watched"
            )
        if lag is not None:
            finalize(self, lag.stop)  # a consumer that is dropped without close() must not leak our thread

    def poll(self, *args: Any, **kwargs: Any) -> Any:
        """Fetch records, and measure how long the application works on them."""
        if self._leader is None:
            return super().poll(*args, **kwargs)
        busy = self._leader.busy
        busy.polls(time.monotonic_ns())
        records = super().poll(*args, **kwargs)
        busy.given(by_topic(records), time.monotonic_ns())
        return records

    def committed(self, *args: Any, **kwargs: Any) -> Any:
        """Return the committed offsets with the user's own metadata, without our notes."""
        found = super().committed(*args, **kwargs)
        return with_note({0: found}, "")[0] if hasattr(found, "metadata") else found

    def subscribe(
        self, topics: Iterable[str] = (), pattern: str | re.Pattern[str] | None = None, listener: Any = None
    ) -> None:
        """Subscribe. With the user's own load, wait for the lag of these topics before joining."""
        super().subscribe(topics, pattern, listener)
        if self._lag is None:
            return
        if self._leader is not None:
            self._lag.include(self.subscription() or (), pattern=pattern)
        else:
            self._lag.watch(self.subscription() or (), pattern=pattern)
            self._lag.wait(FIRST_READING_S)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the consumer and its lag reader."""
        try:
            super().close(*args, **kwargs)
        finally:
            if self._lag is not None:
                self._lag.close()


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


def _by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    grouped: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        grouped[topic].append(partition)
    return grouped


def _metadata(cluster: Any) -> ClientMetadata:
    return ClientMetadata(cluster, attrgetter("replica_nodes"))
