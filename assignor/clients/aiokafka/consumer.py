"""aiokafka's consumer with our assignors.

Hooks run on the event loop. A hook that raises stops the group coordination for good, so no data of another member may
raise here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from loadwise.assignor.clients.aiokafka.lag import AiokafkaLag
from loadwise.assignor.clients.aiokafka.version import TRIED
from loadwise.assignor.clients.aiokafka.watch import LoadWatch, timed
from loadwise.assignor.clients.arguments import check_arguments
from loadwise.assignor.clients.metadata import ClientMetadata
from loadwise.assignor.clients.records import by_topic
from loadwise.assignor.errors import UnsupportedByClientError
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.load.lag import LoadOfLag, commit_slack_s, load_of, max_poll_s
from loadwise.assignor.load.source import LoadSource
from loadwise.assignor.model import NO_GENERATION, Assignor
from loadwise.assignor.participant import AssignorChoice, Participant
from loadwise.assignor.strategy import Strategy
from loadwise.assignor.subscription import JoinedMember
from loadwise.protocol.consumer import Subscription

__all__ = ["AiokafkaAssignor", "AiokafkaLag", "aiokafka_consumer", "assignor"]

FIRST_READING_S = 5.0
"""How long a starting consumer with the user's own load waits for the group's lag before it joins without."""


class AiokafkaAssignor(AbstractPartitionAssignor):
    """One of our assignors for ``partition_assignment_strategy=[...]``. Each consumer needs its own object."""

    def __init__(self, participant: Participant, strategy: Strategy | None = None) -> None:
        self.participant = participant
        """The member's state and decisions. Its counters have how often it led, and how often without load."""
        self.strategy = participant.strategies[0] if strategy is None else strategy
        """Which of the member's strategies it serves."""
        self.joined: Sequence[JoinedMember] = ()
        """The members in the JoinGroup answer of the current rebalance, if the consumer provides them."""
        self._coordinator: Any = None

    @property
    def name(self) -> str:
        """The strategy's name on the wire."""
        return self.strategy.name

    def metadata(self, topics: Iterable[str]) -> bytes:
        """Return the encoded subscription; the client sends bytes as they are."""
        owned: defaultdict[str, list[int]] | None = None
        generation = None
        if self.participant.cooperative and self._coordinator is not None:
            owned = defaultdict(list)
            for topic, partition in self._coordinator.held:
                owned[topic].append(partition)
            generation = int(self._coordinator.generation)
        return self.participant.subscription(topics, owned=owned, generation=generation, protocol=self.name)

    def on_assignment(self, assignment: Any) -> None:
        """Store the assignment for the next join."""
        generation = NO_GENERATION if self._coordinator is None else int(self._coordinator.generation)
        user_data = assignment.user_data or None
        self.participant.assigned(dict(assignment.assignment), generation, self.name, user_data=user_data)

    def explain(self) -> Decision | None:
        """Return the newest decision about the group's load; None while another member leads."""
        return self.participant.explain()

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, bytes]:
        """As the leader, return every member's assignment; the client sends bytes as they are."""
        joined = self.joined or [
            JoinedMember(
                id=member, subscription=Subscription(topics=metadata.subscription, user_data=metadata.user_data)
            )
            for member, metadata in members.items()
        ]
        return self.participant.assign(joined, _metadata(cluster), protocol=self.name)

    def resume(self, cluster: Any, described: Sequence[tuple[JoinedMember, Mapping[str, Sequence[int]]]]) -> None:
        """Watch the group again that this member already led before it was restarted."""
        self.participant.resume(described, _metadata(cluster), protocol=self.name)

    def follow(self, coordinator: Any) -> None:
        """Read the generation and the owned partitions from the consumer's coordinator."""
        self._coordinator = coordinator


def assignor(
    name: str | Assignor = "weighted",
    *,
    capacity: float | None = None,
    rack: str | None = None,
    load: LoadSource | None = None,
) -> AiokafkaAssignor:
    """Make an assignor for one consumer's ``partition_assignment_strategy``.

    ``name`` is an eager strategy (range, roundrobin, sticky, weighted) or an algorithm with parameters, such as
    ``Weighted(epsilon=0.02)``. ``rack`` is the consumer's ``client_rack``. ``capacity`` and ``load`` are for weighted:
    the member's capacity relative to the others, and the source of the partitions' loads. Without a load, weighted
    balances the number of partitions.

    Raises `UnsupportedByClientError` for a cooperative strategy, `UnknownStrategyError` and `BadGroupError`.
    """
    participant = Participant(name, capacity=capacity, rack=rack, load=load)
    _refuse_cooperative(participant, "it revokes everything before it joins (eager); use aiokafka_consumer()")
    return AiokafkaAssignor(participant)


def aiokafka_consumer(
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
) -> AIOKafkaConsumer:
    """Make an ``AIOKafkaConsumer`` whose group uses our strategies; start and stop it as usual.

    ``config`` takes the client's own keyword arguments, except ``partition_assignment_strategy``. ``assignor``,
    ``capacity`` and ``load`` are those of `assignor`. ``assignor`` may also be cooperative, or a list in order of
    preference, such as ``["weighted", "range"]`` during an upgrade. The group uses the first name that all members
    have; one eager name makes this member eager. ``cooperative`` selects the cooperative form of a name.

    Without a ``load``, a weighted strategy uses the group's demand: the arrivals and the backlog of each partition. The
    group's leader reads them every ``lag_interval_s`` with the client's own settings. It measures the members'
    capacities if no ``capacity`` is given, and requests a rebalance if that pays. ``live`` (`LiveSettings`) configures
    when; False: never. ``on_decision`` is called with each decision. ``load`` may also be a function of the group's
    lag, which every member then reads. With the user's own load, no rebalance is requested.

    The consumer is aiokafka's own class; its ``assignor`` is the `AiokafkaAssignor` of the preferred strategy.

    Raises what `assignor` and ``AIOKafkaConsumer`` raise, and `TypeError` or `ValueError` that names a bad argument.
    """
    check_arguments(group_id, lag_interval_s, config)
    source = load if isinstance(load, LoadSource) else None
    rack = config.get("client_rack")
    participant = Participant(assignor, cooperative=cooperative, capacity=capacity, rack=rack, load=source)
    if not TRIED.includes_installed:
        why = f"aiokafka {TRIED.installed} was not tested with loadwise's own coordinator ({TRIED.range} were)"
        _refuse_cooperative(participant, why)
        if len(participant.strategies) > 1:
            raise UnsupportedByClientError(f"{why}; give one eager strategy instead of a list")
    lag = None
    if participant.load_aware and source is None:
        lag = AiokafkaLag(*topics, group_id=group_id, interval_s=lag_interval_s, **config)
        if load is None and TRIED.includes_installed:
            times = {"slack_s": commit_slack_s(config), "max_poll_s": max_poll_s(config)}
            participant.lead_by(lag, live, **times, on_decision=on_decision)
        else:
            participant.load = load_of(lag, load)
    return _Consumer(*topics, participant=participant, lag=lag, group_id=group_id, **config)


def _refuse_cooperative(participant: Participant, why: str) -> None:
    for strategy in participant.strategies:
        if strategy.cooperative:
            raise UnsupportedByClientError(
                f"aiokafka cannot use {strategy.name!r} here: {why}, or use {strategy.algorithm!r}, which is eager"
            )


class _Consumer(AIOKafkaConsumer):
    """An ``AIOKafkaConsumer`` with our assignors that tolerates members with unreadable subscriptions."""

    def __init__(self, *topics: str, participant: Participant, lag: AiokafkaLag | None, **config: Any) -> None:
        self._plugs = [AiokafkaAssignor(participant, strategy) for strategy in participant.strategies]
        self.assignor = self._plugs[0]
        self._lag = lag
        self._leader = participant.leader
        self._watch: LoadWatch | None = None
        super().__init__(*topics, partition_assignment_strategy=self._plugs, **config)

    def subscribe(
        self, topics: Iterable[str] = (), pattern: str | re.Pattern[str] | None = None, listener: Any = None
    ) -> None:
        """Subscribe. The first rebalance waits a few seconds at most for the lag of these topics."""
        super().subscribe(topics, pattern, listener)
        if self._lag is not None and self._leader is not None:
            self._lag.include(self.subscription() or (), pattern=pattern)
        elif self._lag is not None:
            self._lag.watch(self.subscription() or (), pattern=pattern)

    async def start(self) -> None:
        """Start the lag reader for the first rebalance, then the consumer."""
        try:
            if self._lag is not None:
                self._lag.start(at_once=self._leader is None)
                if self._leader is None:
                    await self._lag.wait(FIRST_READING_S)
            await super().start()
        except BaseException:
            await self._stop_lag()
            raise

    async def getone(self, *partitions: Any) -> Any:
        """Get a record, and measure how long the application works on it."""
        return await timed(self._leader, super().getone, lambda record: {record.topic: 1})(*partitions)

    async def getmany(self, *partitions: Any, **options: Any) -> Any:
        """Get records, and measure how long the application works on them."""
        return await timed(self._leader, super().getmany, by_topic)(*partitions, **options)

    async def stop(self) -> None:
        """Stop the consumer and its lag reader."""
        try:
            await super().stop()
        finally:
            await self._stop_lag()

    async def _stop_lag(self) -> None:
        if self._lag is not None:
            await self._lag.close()

    async def _before_assignment(self, joined: Sequence[JoinedMember]) -> None:
        if self._watch is not None:
            await self._watch.elected({topic for member in joined for topic in member.subscription.topics})
        elif self._lag is not None:
            await self._lag.wait(FIRST_READING_S)  # returns at once unless these topics are newly subscribed

    @property
    def _coordinator(self) -> Any:
        return self._group_coordinator

    @_coordinator.setter
    def _coordinator(self, coordinator: Any) -> None:
        # `start` makes the coordinator, then waits for its first assignment. This setter runs in between.
        self._group_coordinator = coordinator
        if coordinator is None:
            return
        if not TRIED.includes_installed:
            TRIED.warn("as the leader, it assigns without generations, racks and instance ids of the others")
            return
        from loadwise.assignor.clients.aiokafka.internals import take_over  # noqa: PLC0415 (other versions lack it)

        take_over(coordinator, self._plugs, self._before_assignment)
        for plug in self._plugs:
            plug.follow(coordinator)
        if self._leader is not None and self._lag is not None:
            self._watch = LoadWatch(coordinator, self._leader, self._lag)
            coordinator.note = self._watch.note


def _metadata(cluster: Any) -> ClientMetadata:
    return ClientMetadata(cluster, attrgetter("replicas"))
