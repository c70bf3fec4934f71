"""kafka-python: our assignors as its ``AbstractPartitionAssignor``, and a factory of consumers that have one.

Two ways to plug in::

    from loadwise.assignor.clients import kafka_python

    consumer = kafka_python.kafka_consumer("flights", group_id="g", bootstrap_servers="localhost:9092",
                                           assignor="weighted", capacity=2.0)

    consumer = KafkaConsumer("flights", group_id="g", bootstrap_servers="localhost:9092",
                             partition_assignment_strategy=[kafka_python.assignor("sticky")])

The factory is the better one: hooks get neither credentials nor the group id, so only it can read the group's lag; and
it knows what the consumer still holds, so that a member which lost its place does not send what others own by now.

All hooks run on the client's I/O thread, which sends the heartbeats too: they do no I/O and do not block. An exception
in one leaves ``poll()`` as it is, and is retried for ever; hence nothing that a peer can send raises here.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any
from weakref import WeakMethod, finalize

from loadwise.assignor.clients.arguments import check_arguments
from loadwise.assignor.clients.commit_notes import with_note
from loadwise.assignor.clients.kafka_python_lag import KafkaPythonLag
from loadwise.assignor.clients.metadata import ClientMetadata
from loadwise.assignor.clients.records import by_topic
from loadwise.assignor.clients.versions import TriedVersions
from loadwise.assignor.errors import MissingClientError
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.load.lag import LoadOfLag, commit_slack_s, load_of, max_poll_s
from loadwise.assignor.load.source import LoadSource
from loadwise.assignor.model import Assignor
from loadwise.assignor.participant import AssignorChoice, Participant
from loadwise.assignor.strategy import Strategy
from loadwise.assignor.subscription import JoinedMember
from loadwise.installation import pip_install
from loadwise.protocol.consumer import Subscription

try:
    import kafka
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
except ImportError as error:
    raise MissingClientError(f"kafka-python is not installed; get it with: {pip_install('kafka-python')}") from error

TRIED = TriedVersions("kafka-python", kafka.__version__, oldest=(3, 0, 0), newest=(3, 0, 12))
"""The versions whose private classes `loadwise.assignor.clients.kafka_python_internals` was tested with."""

__all__ = ["KafkaPythonAssignor", "KafkaPythonLag", "assignor", "kafka_consumer"]

FIRST_READING_S = 5.0
"""How long a new consumer with a load of the user's own waits for the group's lag before it joins without."""


class KafkaPythonAssignor(AbstractPartitionAssignor):
    """One of our assignors for ``partition_assignment_strategy=[...]``. One object a consumer: it has its state."""

    def __init__(self, participant: Participant, strategy: Strategy | None = None) -> None:
        self.participant = participant
        """The member's state and decisions. Its counters tell how often it led, and how often without load."""
        self.strategy = participant.strategies[0] if strategy is None else strategy
        """Which of the member's strategies this is."""
        self.joined: Sequence[JoinedMember] = ()
        """The members of the rebalance under way as JoinGroup listed them, where the consumer tells us."""
        self.generation: int | None = None
        """The newest generation that the consumer has joined, where it tells us."""
        self._held: Callable[[], Callable[[], Iterable[tuple[str, int]]] | None] | None = None

    @property
    def name(self) -> str:
        """The strategy's name on the wire."""
        return self.strategy.name

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Eager or cooperative, as the whole list of the member's strategies allows."""
        return [RebalanceProtocol.COOPERATIVE if self.participant.cooperative else RebalanceProtocol.EAGER]

    def metadata(self, topics: Iterable[str]) -> bytes:
        """The subscription to join with; the client sends bytes as they are."""
        owned = None
        if self.participant.cooperative and self._held is not None and (held := self._held()) is not None:
            owned = _by_topic(held())
        generation = self.generation if self.participant.cooperative else None
        return self.participant.subscription(topics, owned=owned, generation=generation, protocol=self.name)

    def on_assignment(self, assignment: Any, generation: int) -> None:
        """Remember the assignment for the next join."""
        partitions = dict(assignment.assigned_partitions)
        self.participant.assigned(partitions, generation, self.name, user_data=assignment.user_data or None)

    def explain(self) -> Decision | None:
        """Answer the newest decision about the group's load; None while another member leads."""
        return self.participant.explain()

    def assign(self, cluster: Any, members: Iterable[Any]) -> dict[str, bytes]:
        """Answer every member's assignment, as the leader; the client sends bytes as they are."""
        joined = self.joined or [_joined(member) for member in members]
        return self.participant.assign(joined, _metadata(cluster), protocol=self.name)

    def resume(self, cluster: Any, described: Sequence[tuple[JoinedMember, Mapping[str, Sequence[int]]]]) -> None:
        """Watch the group again that this member leads since before it was restarted."""
        self.participant.resume(described, _metadata(cluster), protocol=self.name)

    def follow(self, consumer: KafkaConsumer) -> None:
        """Learn from the consumer what it does not tell an assignor: what it holds now. The consumer is not kept."""
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

    ``name`` is a strategy: range, roundrobin, sticky, cooperative-sticky, weighted, cooperative-weighted; or an
    algorithm with parameters of its own, as ``Weighted(epsilon=0.02)``, of which ``cooperative`` asks for the
    cooperative form. ``capacity`` is what this member can process relative to the others, ``load`` where to get the
    loads of the partitions (both for the weighted ones, which balance the number of partitions where they have no
    load); ``rack`` is the consumer's ``client_rack``.

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
    """Make a ``KafkaConsumer`` whose group is assigned by one of our strategies.

    ``config`` is the client's own, any of its keyword arguments but ``partition_assignment_strategy``. ``assignor`` is
    that of `assignor`, or a list in order of preference, as ``["weighted", "range"]`` in the middle of an upgrade: the
    group uses the first name that all of its members have, and one eager name makes this member eager.
    ``cooperative`` and ``capacity`` are those of `assignor`, too. So is ``load``.

    Without a load, a weighted strategy goes by the group's demand: what arrives in each partition, and what waits in
    it. The member that leads the group reads that every ``lag_interval_s``, with the client's own settings. It learns
    what members can process where no ``capacity`` is given, and asks for a rebalance where one pays. ``live`` tells
    when that is (`LiveSettings`); False: never. ``on_decision`` is called with each of its decisions, on the thread
    that reads. ``load`` may also be a function of the group's lag, which every member then reads; for a load of the
    user's own no rebalance is asked for.

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
    """A ``KafkaConsumer`` with our assignors and the client's own parts repaired."""

    def __init__(self, *topics: str, participant: Participant, lag: KafkaPythonLag | None, **config: Any) -> None:
        plugs = [KafkaPythonAssignor(participant, strategy) for strategy in participant.strategies]
        self.assignor = plugs[0]
        self._lag = lag
        self._leader = participant.leader
        super().__init__(*topics, partition_assignment_strategy=plugs, **config)
        for plug in plugs:
            plug.follow(self)
        if TRIED.includes_installed:
            from loadwise.assignor.clients.kafka_python_internals import repair  # noqa: PLC0415 (other versions lack it)

            repair(self, self._leader, lag)
        else:
            TRIED.warn(
                "joins that outlast a poll are lost, a cooperative rebalance stops all partitions, and nobody watches"
                " the group's load"
            )
        if lag is not None:
            finalize(self, lag.stop)  # a consumer that is dropped without being closed leaves no thread of ours behind

    def poll(self, *args: Any, **kwargs: Any) -> Any:
        """Fetch records as the client does. How long the application works on them tells what this member can do."""
        if self._leader is None:
            return super().poll(*args, **kwargs)
        busy = self._leader.busy
        busy.polls(time.monotonic_ns())
        records = super().poll(*args, **kwargs)
        busy.given(by_topic(records), time.monotonic_ns())
        return records

    def committed(self, *args: Any, **kwargs: Any) -> Any:
        """Get what is committed as the client does. Metadata are the user's own: a note of ours is left out."""
        found = super().committed(*args, **kwargs)
        return with_note({0: found}, "")[0] if hasattr(found, "metadata") else found

    def subscribe(
        self, topics: Iterable[str] = (), pattern: str | re.Pattern[str] | None = None, listener: Any = None
    ) -> None:
        """Subscribe. With a load of the user's own that waits for the lag of these topics: joining comes next."""
        super().subscribe(topics, pattern, listener)
        if self._lag is None:
            return
        if self._leader is not None:
            self._lag.include(self.subscription() or (), pattern=pattern)
        else:
            self._lag.watch(self.subscription() or (), pattern=pattern)
            self._lag.wait(FIRST_READING_S)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the consumer, and what reads the lag for it."""
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
