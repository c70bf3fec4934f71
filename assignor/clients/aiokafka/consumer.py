"""aiokafka's consumer with our assignors.

Hooks run on the event loop. A hook that raises stops the group coordination for good, so no data of another member may
raise here.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.errors import KafkaConnectionError
from aiokafka.structs import TopicPartition

from loadwise.assignor.clients.aiokafka.lag import AiokafkaLag
from loadwise.assignor.clients.aiokafka.logins import reason
from loadwise.assignor.clients.aiokafka.stock import AIOKafkaConsumer
from loadwise.assignor.clients.aiokafka.version import TRIED
from loadwise.assignor.clients.aiokafka.watch import AiokafkaWatch, timed
from loadwise.assignor.clients.factory import BalancedConsumer, ClientKind, ConsumerPlan, Options, plan
from loadwise.assignor.clients.plug import ClientAssignor
from loadwise.assignor.clients.records import Advances
from loadwise.assignor.errors import UnsupportedByClientError
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.load.lag import LoadOfLag
from loadwise.assignor.load.source import LoadSource
from loadwise.assignor.model import Assignor
from loadwise.assignor.participant import Participant
from loadwise.assignor.strategy import AssignorChoice, Strategy
from loadwise.assignor.subscription import JoinedMember
from loadwise.protocol.consumer import Subscription

if TYPE_CHECKING:
    from aiokafka.structs import ConsumerRecord, OffsetAndMetadata

FIRST_READING_S = 5.0
"""How long a starting consumer with the user's own load waits for the group's lag before it joins without."""


class AiokafkaAssignor(ClientAssignor, AbstractPartitionAssignor):
    """One of our assignors for ``partition_assignment_strategy=[...]``. Each consumer needs its own object."""

    replicas = "replicas"

    def __init__(self, participant: Participant, strategy: Strategy | None = None) -> None:
        super().__init__(participant, strategy)
        self._coordinator: Any = None

    def on_assignment(self, assignment: Any) -> None:
        """Store the assignment for the next join."""
        self._assigned(assignment.assignment, self._joined_generation(), assignment.user_data)

    def follow(self, coordinator: Any) -> None:
        """Read the generation and the owned partitions from the consumer's coordinator."""
        self._coordinator = coordinator

    def _held_partitions(self) -> Iterable[tuple[str, int]] | None:
        return None if self._coordinator is None else self._coordinator.held

    def _joined_generation(self) -> int | None:
        return None if self._coordinator is None else int(self._coordinator.generation)

    def _read(self, members: Mapping[str, Any]) -> list[JoinedMember]:
        return [
            JoinedMember(
                id=member, subscription=Subscription(topics=metadata.subscription, user_data=metadata.user_data)
            )
            for member, metadata in members.items()
        ]


def assignor(
    name: str | Assignor = "weighted",
    *,
    capacity: float | None = None,
    rack: str | None = None,
    load: LoadSource | None = None,
) -> AiokafkaAssignor:
    """Make an assignor for one consumer's ``partition_assignment_strategy``.

    ``name`` is range, roundrobin, sticky or weighted, or an object with parameters, such as ``Weighted(epsilon=0.02)``.
    ``rack`` is the consumer's ``client_rack``. ``capacity`` and ``load`` are for weighted: the member's capacity
    relative to the others, and the source of the partitions' loads. Without a load, it balances the number of
    partitions.

    Raises `UnsupportedByClientError` for a cooperative assignor, `UnknownAssignorError` and `BadGroupError`.
    """
    participant = Participant(name, capacity=capacity, rack=rack, load=load)
    _refuse_cooperative(participant, "it revokes everything before it joins (eager); use aiokafka_consumer()")
    return AiokafkaAssignor(participant)


def aiokafka_consumer(
    *topics: str,
    group_id: str,
    assignor: AssignorChoice = "weighted",
    capacity: float | None = None,
    load: LoadSource | LoadOfLag | None = None,
    lag_interval_s: float = 5.0,
    live: LiveSettings | bool | None = None,
    on_decision: Callable[[Decision], None] | None = None,
    **config: Any,
) -> AiokafkaConsumer:
    """Return an ``AIOKafkaConsumer`` whose group uses one of loadwise's assignors; start and stop it as usual.

    The arguments are those of `loadwise.kafka_python_consumer`. ``config`` takes all keyword arguments of
    ``AIOKafkaConsumer`` except ``partition_assignment_strategy``. ``on_decision`` is called in a separate thread.

    Raises what `assignor` and ``AIOKafkaConsumer`` raise, and `TypeError` or `ValueError` that names a bad argument.
    """
    options = Options(
        assignor=assignor,
        capacity=capacity,
        load=load,
        lag_interval_s=lag_interval_s,
        live=live,
        on_decision=on_decision,
    )
    planned = plan(_CLIENT, TRIED, topics, config, group_id=group_id, **options)
    if not TRIED.includes_installed:
        why = f"aiokafka {TRIED.installed} was not tested with loadwise's own coordinator ({TRIED.range} were)"
        _refuse_cooperative(planned.participant, why)
        if len(planned.plugs) > 1:
            raise UnsupportedByClientError(f"{why}; give one eager assignor instead of a list")
    return AiokafkaConsumer(planned)


_CLIENT = ClientKind(
    factory="aiokafka_consumer",
    arguments=frozenset(inspect.signature(AIOKafkaConsumer.__init__).parameters) - {"self", "topics"},
    assignor=AiokafkaAssignor,
    lag=AiokafkaLag,
)


def _refuse_cooperative(participant: Participant, why: str) -> None:
    for strategy in participant.strategies:
        if strategy.cooperative:
            raise UnsupportedByClientError(
                f"aiokafka cannot use {strategy.name!r} here: {why}, or use {strategy.algorithm!r}, which is eager"
            )


class AiokafkaConsumer(BalancedConsumer, AIOKafkaConsumer):
    """An ``AIOKafkaConsumer`` with our assignors and our coordinator: see `aiokafka_consumer`."""

    def __init__(self, plan: ConsumerPlan[AiokafkaLag]) -> None:
        self._plan = plan
        self._lag = plan.lag
        self._leader = plan.participant.leader
        self._advances = Advances()
        self._watch: AiokafkaWatch | None = None
        super().__init__(*plan.topics, partition_assignment_strategy=plan.plugs, **plan.config)

    def subscribe(
        self, topics: Iterable[str] = (), pattern: str | re.Pattern[str] | None = None, listener: Any = None
    ) -> None:
        """Subscribe. The first rebalance waits a few seconds at most for the lag of these topics."""
        super().subscribe(topics, pattern, listener)
        self._read_lag(self.subscription() or (), pattern)

    async def start(self) -> None:
        """Start the lag reader for the first rebalance, then the consumer."""
        try:
            if self._lag is not None:
                self._lag.start(at_once=self._plan.waits_for_lag)
                if self._plan.waits_for_lag:
                    await self._lag.wait(FIRST_READING_S)
            await super().start()
        except KafkaConnectionError as error:
            await self._stop_lag()
            if not TRIED.includes_installed:
                raise
            raise await reason(self._client) from error
        except BaseException:
            await self._stop_lag()
            raise

    async def commit(
        self, offsets: Mapping[TopicPartition, int | tuple[int, str] | OffsetAndMetadata] | None = None
    ) -> None:
        """Commit as the client does; rebalances wait for it from then on."""
        if self._coordinator is not None:
            self._coordinator.commits_by_hand = True
        await super().commit(offsets)

    async def getone(self, *partitions: TopicPartition) -> ConsumerRecord:
        """Get a record, and measure how long the application works on it."""
        await self._come_for_records()
        get = timed(self._leader, super().getone, self._advance)
        return await get(*partitions)

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Get records, and measure how long the application works on them."""
        await self._come_for_records()
        get = timed(self._leader, super().getmany, self._advances.of)
        records = await get(*partitions, timeout_ms=timeout_ms, max_records=max_records)
        while not records and self._holds_gets:
            records = await get(*partitions, timeout_ms=timeout_ms, max_records=max_records)
        return records

    @property
    def _holds_gets(self) -> bool:
        """Whether an eager join is pending, whose end would make a commit come too late.

        The client itself waits for the join only in the next call.
        """
        by_hand = TRIED.includes_installed and self._coordinator.commits_by_hand
        joins = self._subscription.reassignment_in_progress and self.subscription()
        return bool(by_hand and joins and not self._closed)

    async def _come_for_records(self) -> None:
        if TRIED.includes_installed:
            await self._coordinator.come_for_records()

    def _advance(self, record: ConsumerRecord) -> dict[str, int]:
        return self._advances.of({TopicPartition(record.topic, record.partition): [record]})

    async def stop(self) -> None:
        """Stop the consumer and its lag reader."""
        try:
            await super().stop()
        finally:
            await self._stop_lag()
            await asyncio.to_thread(self._plan.participant.close)

    async def _stop_lag(self) -> None:
        if self._lag is not None:
            await self._lag.close()

    async def _before_assignment(self, joined: Sequence[JoinedMember]) -> None:
        if self._watch is not None:
            topics = {topic for member in joined for topic in member.subscription.topics}
            await self._watch.read(topics, self._coordinator.member_id)
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

        take_over(coordinator, self._plan.plugs, self._before_assignment)
        for plug in self._plan.plugs:
            plug.follow(coordinator)
        if self._leader is not None and self._lag is not None:
            self._watch = AiokafkaWatch(coordinator, self._leader, self._lag)
            coordinator.watch = self._watch
