"""aiokafka: our assignors as its ``AbstractPartitionAssignor``, and a factory of consumers that have one.

Two ways to plug in::

    from loadwise.assignor.clients import aiokafka

    consumer = aiokafka.aiokafka_consumer("flights", group_id="g", bootstrap_servers="localhost:9092",
                                          assignor="weighted", capacity=2.0)

    consumer = AIOKafkaConsumer("flights", group_id="g", bootstrap_servers="localhost:9092",
                                partition_assignment_strategy=[aiokafka.assignor("sticky")])

Give the explicit form one assignor, not several: the client sends one JoinGroup for each. The factory is the better
one. The client tells its assignor neither the generation (aiokafka #1176: so a claim of long ago looks as good as a new
one) nor the other members' instance ids and racks. The factory's consumer does: it reads them where the client's
coordinator has them, so that it answers what any other client's leader would.

aiokafka is eager: a cooperative strategy is refused. Hooks run on the event loop, and one that raises ends the
coordination of the group for good; hence nothing that a peer can send raises here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from loadwise.assignor.clients.aiokafka_lag import AiokafkaLag
from loadwise.assignor.clients.arguments import check_arguments
from loadwise.assignor.clients.metadata import ClientMetadata
from loadwise.assignor.errors import MissingClientError, UnsupportedByClientError
from loadwise.assignor.load.lag import LoadOfLag, load_of
from loadwise.assignor.load.source import LoadSource
from loadwise.assignor.model import NO_GENERATION, Assignor
from loadwise.assignor.participant import Participant
from loadwise.assignor.subscription import JoinedMember, read_joined_members
from loadwise.installation import pip_install
from loadwise.protocol.consumer import Subscription

try:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.consumer.group_coordinator import GroupCoordinator
    from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
except ImportError as error:
    raise MissingClientError(f"aiokafka is not installed; get it with: {pip_install('aiokafka')}") from error

__all__ = ["AiokafkaAssignor", "AiokafkaLag", "aiokafka_consumer", "assignor"]

FIRST_READING_S = 5.0
"""How long a starting consumer waits for the group's lag before it joins without."""


class AiokafkaAssignor(AbstractPartitionAssignor):
    """One of our assignors for ``partition_assignment_strategy=[...]``. One object a consumer: it has its state."""

    def __init__(self, participant: Participant) -> None:
        if participant.strategy.cooperative:
            raise UnsupportedByClientError(
                f"aiokafka cannot use {participant.strategy.name!r}: it revokes everything before it joins (eager), and"
                " a member of a cooperative group must not; use 'sticky' or 'weighted', or kafka-python"
            )
        self.participant = participant
        """The member's state and decisions. Its counters tell how often it led, and how often without load."""
        self._generation: Callable[[], int] = lambda: NO_GENERATION
        """The generation that the consumer is in, where we can ask it."""
        self._joined: Sequence[JoinedMember] = ()
        """The members of the rebalance under way as JoinGroup listed them, where we could see that."""

    @property
    def name(self) -> str:
        """The strategy's name on the wire."""
        return self.participant.strategy.name

    def metadata(self, topics: Iterable[str]) -> bytes:
        """The subscription to join with; the client sends bytes as they are."""
        return self.participant.subscription(topics)

    def on_assignment(self, assignment: Any) -> None:
        """Remember the assignment for the next join."""
        self.participant.assigned(dict(assignment.assignment), self._generation())

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, bytes]:
        """Answer every member's assignment, as the leader; the client sends bytes as they are."""
        joined = self._joined or [
            JoinedMember(
                id=member, subscription=Subscription(topics=metadata.subscription, user_data=metadata.user_data)
            )
            for member, metadata in members.items()
        ]
        return self.participant.assign(joined, _metadata(cluster))

    def follow(self, coordinator: GroupCoordinator, lag: AiokafkaLag | None = None) -> None:
        """Learn from the client's coordinator what it does not tell an assignor: generations, and members in full."""
        self._generation = lambda: int(coordinator.generation)
        perform = coordinator._perform_assignment

        async def perform_with_members_in_full(response: Any) -> Any:
            self._joined = read_joined_members(
                (member_id, instance_id[0] if instance_id else None, data)
                for member_id, *instance_id, data in response.members
            )
            # The client decodes all members as well, for their topics, and one that it cannot decode ends its work.
            readable: dict[int, bytes] = {}
            for joined in self._joined:
                if id(joined.subscription.topics) not in readable:  # most members share their list with others
                    topics_only = Subscription(topics=joined.subscription.topics)
                    readable[id(joined.subscription.topics)] = topics_only.encode()
            response.members = [
                (*member[:-1], readable[id(joined.subscription.topics)])
                for member, joined in zip(response.members, self._joined, strict=True)
            ]
            if lag is not None:
                await lag.wait(FIRST_READING_S)  # at once, unless these topics were subscribed to only just now
            try:
                return await perform(response)
            finally:
                self._joined = ()

        coordinator._perform_assignment = perform_with_members_in_full


def assignor(
    name: str | Assignor = "weighted",
    *,
    capacity: float = 1.0,
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
    return AiokafkaAssignor(Participant(name, capacity=capacity, rack=rack, load=load))


def aiokafka_consumer(
    *topics: str,
    group_id: str,
    assignor: str | Assignor = "weighted",
    capacity: float = 1.0,
    load: LoadSource | LoadOfLag | None = None,
    lag_interval_s: float = 5.0,
    **config: Any,
) -> AIOKafkaConsumer:
    """Make an ``AIOKafkaConsumer`` whose group is assigned by one of our strategies; start and stop it as usual.

    ``config`` is the client's own, any of its keyword arguments but ``partition_assignment_strategy``. ``assignor`` and
    ``capacity`` are those of `assignor`. So is ``load``; but without one, ``weighted`` goes by the group's lag, read
    with the client's own settings every ``lag_interval_s`` from start to stop, or by what ``load`` makes of that lag
    where it is a function of it. ``start`` waits for the first reading, a few seconds at most. The consumer is
    aiokafka's own class; its ``assignor`` is the `AiokafkaAssignor`.

    Raises what `assignor` and ``AIOKafkaConsumer`` raise.
    """
    check_arguments(group_id, lag_interval_s, config)
    source = load if isinstance(load, LoadSource) else None
    rack = config.get("client_rack")
    participant = Participant(assignor, capacity=capacity, rack=rack, load=source)
    plug = AiokafkaAssignor(participant)
    lag = None
    if participant.load_aware and source is None:
        lag = AiokafkaLag(*topics, group_id=group_id, interval_s=lag_interval_s, **config)
        participant.load = load_of(lag, load)
    return _Consumer(*topics, plug=plug, lag=lag, group_id=group_id, **config)


class _Consumer(AIOKafkaConsumer):
    """An ``AIOKafkaConsumer`` that keeps its assignor informed, and its group safe from members that it cannot read."""

    def __init__(self, *topics: str, plug: AiokafkaAssignor, lag: AiokafkaLag | None, **config: Any) -> None:
        self.assignor = plug
        self._lag = lag
        super().__init__(*topics, partition_assignment_strategy=[plug], **config)

    def subscribe(
        self, topics: Iterable[str] = (), pattern: str | re.Pattern[str] | None = None, listener: Any = None
    ) -> None:
        """Subscribe. The first rebalance waits for the lag of these topics, a few seconds at most."""
        super().subscribe(topics, pattern, listener)
        if self._lag is not None:
            self._lag.watch(self.subscription() or (), pattern=pattern)

    async def start(self) -> None:
        """Start the consumer, and before it what reads the lag for its first rebalance."""
        try:
            if self._lag is not None:
                self._lag.start()
                await self._lag.wait(FIRST_READING_S)
            await super().start()
        except BaseException:
            await self._stop_lag()
            raise

    async def stop(self) -> None:
        """Stop the consumer, and what reads the lag for it."""
        try:
            await super().stop()
        finally:
            await self._stop_lag()

    async def _stop_lag(self) -> None:
        if self._lag is not None:
            await self._lag.close()

    @property
    def _coordinator(self) -> GroupCoordinator | None:
        return self._group_coordinator

    @_coordinator.setter
    def _coordinator(self, coordinator: GroupCoordinator | None) -> None:
        # `start` makes the coordinator and waits for its first assignment: this is the one moment in between.
        self._group_coordinator = coordinator
        if isinstance(coordinator, GroupCoordinator):
            self.assignor.follow(coordinator, self._lag)


def _metadata(cluster: Any) -> ClientMetadata:
    return ClientMetadata(cluster, attrgetter("replicas"))
