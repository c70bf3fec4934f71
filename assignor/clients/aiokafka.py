"""aiokafka: our assignors as its ``AbstractPartitionAssignor``, and a factory of consumers that have one.

Two ways to plug in::

    from loadwise.assignor.clients import aiokafka

    consumer = aiokafka.aiokafka_consumer("flights", group_id="g", bootstrap_servers="localhost:9092",
                                          assignor="weighted", capacity=2.0)

    consumer = AIOKafkaConsumer("flights", group_id="g", bootstrap_servers="localhost:9092",
                                partition_assignment_strategy=[aiokafka.assignor("sticky")])

The factory is the better one. The client tells its assignor neither the generation (aiokafka #1176: partitions of long
ago look as good as new ones) nor the other members' instance ids and racks. It is eager, and it sends one JoinGroup for
each assignor, so give the explicit form one eager assignor. The factory's consumer reads what is missing where the
client's coordinator has it, joins with any list of strategies at once, and is cooperative where they are.

Hooks run on the event loop, and one that raises ends the coordination of the group for good; hence nothing that a peer
can send raises here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from loadwise.assignor.clients.aiokafka_lag import AiokafkaLag
from loadwise.assignor.clients.aiokafka_watch import LoadWatch, timed
from loadwise.assignor.clients.arguments import check_arguments
from loadwise.assignor.clients.metadata import ClientMetadata
from loadwise.assignor.clients.records import by_topic
from loadwise.assignor.clients.versions import TriedVersions
from loadwise.assignor.errors import MissingClientError, UnsupportedByClientError
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.load.lag import LoadOfLag, commit_slack_s, load_of, max_poll_s
from loadwise.assignor.load.source import LoadSource
from loadwise.assignor.model import NO_GENERATION, Assignor
from loadwise.assignor.participant import AssignorChoice, Participant
from loadwise.assignor.strategy import Strategy
from loadwise.assignor.subscription import JoinedMember
from loadwise.installation import pip_install
from loadwise.protocol.consumer import Subscription

try:
    import aiokafka
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
except ImportError as error:
    raise MissingClientError(f"aiokafka is not installed; get it with: {pip_install('aiokafka')}") from error

TRIED = TriedVersions("aiokafka", aiokafka.__version__, oldest=(0, 13, 0), newest=(0, 14, 0))
"""The versions whose private classes `loadwise.assignor.clients.aiokafka_internals` was tested with."""

__all__ = ["AiokafkaAssignor", "AiokafkaLag", "aiokafka_consumer", "assignor"]

FIRST_READING_S = 5.0
"""How long a starting consumer with a load of the user's own waits for the group's lag before it joins without."""


class AiokafkaAssignor(AbstractPartitionAssignor):
    """One of our assignors for ``partition_assignment_strategy=[...]``. One object a consumer: it has its state."""

    def __init__(self, participant: Participant, strategy: Strategy | None = None) -> None:
        self.participant = participant
        """The member's state and decisions. Its counters tell how often it led, and how often without load."""
        self.strategy = participant.strategies[0] if strategy is None else strategy
        """Which of the member's strategies this is."""
        self.joined: Sequence[JoinedMember] = ()
        """The members of the rebalance under way as JoinGroup listed them, where the consumer tells us."""
        self._coordinator: Any = None

    @property
    def name(self) -> str:
        """The strategy's name on the wire."""
        return self.strategy.name

    def metadata(self, topics: Iterable[str]) -> bytes:
        """The subscription to join with; the client sends bytes as they are."""
        owned: defaultdict[str, list[int]] | None = None
        generation = None
        if self.participant.cooperative and self._coordinator is not None:
            owned = defaultdict(list)
            for topic, partition in self._coordinator.held:
                owned[topic].append(partition)
            generation = int(self._coordinator.generation)
        return self.participant.subscription(topics, owned=owned, generation=generation, protocol=self.name)

    def on_assignment(self, assignment: Any) -> None:
        """Remember the assignment for the next join."""
        generation = NO_GENERATION if self._coordinator is None else int(self._coordinator.generation)
        user_data = assignment.user_data or None
        self.participant.assigned(dict(assignment.assignment), generation, self.name, user_data=user_data)

    def explain(self) -> Decision | None:
        """Answer the newest decision about the group's load; None while another member leads."""
        return self.participant.explain()

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, bytes]:
        """Answer every member's assignment, as the leader; the client sends bytes as they are."""
        joined = self.joined or [
            JoinedMember(
                id=member, subscription=Subscription(topics=metadata.subscription, user_data=metadata.user_data)
            )
            for member, metadata in members.items()
        ]
        return self.participant.assign(joined, _metadata(cluster), protocol=self.name)

    def resume(self, cluster: Any, described: Sequence[tuple[JoinedMember, Mapping[str, Sequence[int]]]]) -> None:
        """Watch the group again that this member leads since before it was restarted."""
        self.participant.resume(described, _metadata(cluster), protocol=self.name)

    def follow(self, coordinator: Any) -> None:
        """Learn from the consumer's coordinator what the client does not tell: its generation, and what it holds."""
        self._coordinator = coordinator


def assignor(
    name: str | Assignor = "weighted",
    *,
    capacity: float | None = None,
    rack: str | None = None,
    load: LoadSource | None = None,
) -> AiokafkaAssignor:
    """Make an assignor for one consumer's ``partition_assignment_strategy``.

    ``name`` is an eager strategy: range, roundrobin, sticky, weighted; or an algorithm with parameters of its own, as
    ``Weighted(epsilon=0.02)``. ``capacity`` is what this member can process relative to the others, ``load`` where to
    get the loads of the partitions (both for weighted, which balances the number of partitions where it has no load);
    ``rack`` is the consumer's ``client_rack``.

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
    """Make an ``AIOKafkaConsumer`` whose group is assigned by one of our strategies; start and stop it as usual.

    ``config`` is the client's own, any of its keyword arguments but ``partition_assignment_strategy``. ``assignor`` and
    ``capacity`` are those of `assignor`. ``assignor`` may be cooperative, too, or a list in order of preference, as
    ``["weighted", "range"]`` in the middle of an upgrade: the group uses the first name that all of its members have,
    and one eager name makes this member eager. ``cooperative`` asks for the cooperative form of a name. ``load`` is
    that of `assignor`.

    Without a load, a weighted strategy goes by the group's demand: what arrives in each partition, and what waits in
    it. The member that leads the group reads that every ``lag_interval_s``, with the client's own settings. It learns
    what members can process where no ``capacity`` is given, and asks for a rebalance where one pays. ``live`` tells
    when that is (`LiveSettings`); False: never. ``on_decision`` is called with each of its decisions. ``load`` may also
    be a function of the group's lag, which every member then reads; for a load of the user's own no rebalance is asked
    for.

    The consumer is aiokafka's own class; its ``assignor`` is the `AiokafkaAssignor` of the preferred strategy.

    Raises what `assignor` and ``AIOKafkaConsumer`` raise, and `TypeError` or `ValueError` that names a bad argument.
    """
    check_arguments(group_id, lag_interval_s, config)
    source = load if isinstance(load, LoadSource) else None
    rack = config.get("client_rack")
    participant = Participant(assignor, cooperative=cooperative, capacity=capacity, rack=rack, load=source)
    if not TRIED.includes_installed:
        why = f"aiokafka {TRIED.installed} was never tried with loadwise's own coordinator, {TRIED.range} were"
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
    """An ``AIOKafkaConsumer`` with our assignors, in a group that is safe from members that it cannot read."""

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
        """Subscribe. The first rebalance waits for the lag of these topics, a few seconds at most."""
        super().subscribe(topics, pattern, listener)
        if self._lag is not None and self._leader is not None:
            self._lag.include(self.subscription() or (), pattern=pattern)
        elif self._lag is not None:
            self._lag.watch(self.subscription() or (), pattern=pattern)

    async def start(self) -> None:
        """Start the consumer, and before it what reads the lag for its first rebalance."""
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
        """Get a record as the client does. How long the application works on it tells what this member can do."""
        return await timed(self._leader, super().getone, lambda record: {record.topic: 1})(*partitions)

    async def getmany(self, *partitions: Any, **options: Any) -> Any:
        """Get records as the client does. How long the application works on them tells what this member can do."""
        return await timed(self._leader, super().getmany, by_topic)(*partitions, **options)

    async def stop(self) -> None:
        """Stop the consumer, and what reads the lag for it."""
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
            await self._lag.wait(FIRST_READING_S)  # at once, unless these topics were subscribed to only just now

    @property
    def _coordinator(self) -> Any:
        return self._group_coordinator

    @_coordinator.setter
    def _coordinator(self, coordinator: Any) -> None:
        # `start` makes the coordinator and waits for its first assignment: this is the one moment in between.
        self._group_coordinator = coordinator
        if coordinator is None:
            return
        if not TRIED.includes_installed:
            TRIED.warn("as the leader, it assigns without generations, racks and instance ids of the others")
            return
        from loadwise.assignor.clients.aiokafka_internals import take_over  # noqa: PLC0415 (other versions lack it)

        take_over(coordinator, self._plugs, self._before_assignment)
        for plug in self._plugs:
            plug.follow(coordinator)
        if self._leader is not None and self._lag is not None:
            self._watch = LoadWatch(coordinator, self._leader, self._lag)
            coordinator.note = self._watch.note


def _metadata(cluster: Any) -> ClientMetadata:
    return ClientMetadata(cluster, attrgetter("replicas"))
