"""One run: a fresh group of three drains the topic, a fourth member joins half-way, and the books are kept."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from loadwise.assignor.strategy import strategy
from loadwise.demo.cluster import Cluster
from loadwise.demo.errors import StuckError
from loadwise.demo.ledger import Ledger
from loadwise.demo.messages import Assigned, Generation, Order, Processed, Ready, decode
from loadwise.demo.process import Child, children, listening

TICK_S = 0.1
_READY_S = 120.0
_SETTLE_S = 120.0

KAFKA_PYTHON = "kafka-python"
AIOKAFKA = "aiokafka"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run: one assignor, and the clients of the members."""

    assignor: str
    """Its name on the wire."""
    clients: tuple[str, ...]
    """The client of each member; the last one joins half-way."""
    rate_per_s: float
    """Records a second that each member processes at most."""

    @property
    def founders(self) -> range:
        """The members that are there from the start."""
        return range(len(self.clients) - 1)

    @property
    def late(self) -> int:
        """The member that joins half-way."""
        return len(self.clients) - 1

    def ideal_s(self, records: int) -> float:
        """Seconds to drain the records if no member is ever idle and the last one is there for the second half."""
        half = records / 2
        return half / (self.rate_per_s * self.late) + half / (self.rate_per_s * (self.late + 1))


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of a run at one moment."""

    at_s: float
    """Seconds since the members began to process."""
    backlog: tuple[int, ...]
    """Records that each member still has to process."""
    records: tuple[int, ...]
    """Records that each member has processed."""
    partitions: tuple[int, ...]
    """Partitions that each member owns."""
    done: int
    """Records processed at least once, by anybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a run."""

    plan: Plan
    ends: tuple[int, ...]
    """End offset of every partition: what there was to process."""
    records: tuple[int, ...]
    """Records that each member processed."""
    repeated: int
    """How often a record was processed again."""
    first_owners: tuple[int | None, ...]
    """The member that owned each partition when processing began."""
    last_owners: tuple[int | None, ...]
    """The member that owned each partition once the late member had its own."""
    left: tuple[int, ...]
    """Records of each partition that were still to be processed at that moment."""
    joined_s: float
    """When the late member got the order to join, in seconds since processing began."""
    drained_s: float
    """When the last record was processed."""
    rebalances: int
    """Rebalances since processing began: by how much the group's generation rose."""
    samples: tuple[Sample, ...] = field(repr=False)
    """The course of it, every tenth of a second."""


async def run_group(cluster: Cluster, plan: Plan, ends: Sequence[int], show: Callable[[Sample], None]) -> Outcome:
    """Run one group until the topic is drained and committed.

    Raises `ChildDiedError` when a member dies, `StuckError` when records are left and no member processes them, and
    `CheckFailedError` when processed records are not committed.
    """
    group, commands = new_group(cluster, plan.assignor, plan.clients, plan.rate_per_s)
    ledger = Ledger(ends, len(plan.clients))
    ready = [asyncio.Event() for _ in plan.clients]
    async with children(commands) as members:
        async with listening(_listen(each, number, ledger, ready[number]) for number, each in enumerate(members)):
            run = _Run(cluster=cluster, plan=plan, group=group, ledger=ledger, members=members, show=show)
            outcome = await run.drain(ready)
        await asyncio.gather(*(member.order(Order.STOP) for member in members))
        await asyncio.gather(*(member.finished() for member in members))
    return outcome


class _Run:
    def __init__(
        self,
        *,
        cluster: Cluster,
        plan: Plan,
        group: str,
        ledger: Ledger,
        members: Sequence[Child],
        show: Callable[[Sample], None],
    ) -> None:
        self._cluster = cluster
        self._plan = plan
        self._group = group
        self._ledger = ledger
        self._members = members
        self._show = show
        self._clock = asyncio.get_running_loop().time
        self._began_s = 0.0
        self._samples: list[Sample] = []

    async def drain(self, ready: Sequence[asyncio.Event]) -> Outcome:
        plan, ledger = self._plan, self._ledger
        records = sum(ledger.ends)
        everybody = range(len(plan.clients))
        await _in_time(_READY_S, asyncio.gather(*(event.wait() for event in ready)), "a member's process did not start")
        await self._order(plan.founders, Order.JOIN)
        await self._until(lambda: ledger.settled(plan.founders), _SETTLE_S)

        first_owners, generation = ledger.owners, ledger.generation
        self._began_s = self._clock()
        await self._order(plan.founders, Order.GO)
        # A member alone with everything would take this long; beyond it no member is processing.
        patience_s = records / plan.rate_per_s + _SETTLE_S
        await self._until(lambda: ledger.done * 2 >= records, patience_s)

        joined_s = self._now_s
        await self._order([plan.late], Order.JOIN)
        await self._order([plan.late], Order.GO)
        await self._until(lambda: ledger.settled(everybody), _SETTLE_S)
        last_owners, left = ledger.owners, ledger.left

        await self._until(lambda: ledger.done == records, patience_s)
        drained_s = self._now_s
        await self._cluster.await_committed(self._group, ledger.ends)
        return Outcome(
            plan=plan,
            ends=ledger.ends,
            records=tuple(ledger.records),
            repeated=ledger.repeated,
            first_owners=first_owners,
            last_owners=last_owners,
            left=left,
            joined_s=joined_s,
            drained_s=drained_s,
            rebalances=ledger.generation - generation,
            samples=tuple(self._samples),
        )

    @property
    def _now_s(self) -> float:
        return self._clock() - self._began_s

    async def _order(self, members: Sequence[int], order: Order) -> None:
        for member in members:
            await self._members[member].order(order)

    async def _until(self, condition: Callable[[], bool], patience_s: float) -> None:
        """Look at the books every tick, show and sample them, until the condition holds."""
        deadline_s = self._clock() + patience_s
        while True:
            sample = self._sample()
            self._show(sample)
            if self._began_s:
                self._samples.append(sample)
            if condition():
                return
            if self._clock() > deadline_s:
                raise StuckError(self._stuck())
            await asyncio.sleep(TICK_S)

    def _sample(self) -> Sample:
        ledger = self._ledger
        return Sample(
            at_s=self._now_s if self._began_s else 0.0,
            backlog=ledger.backlog,
            records=tuple(ledger.records),
            partitions=tuple(len(ledger.assignment(member)) for member in range(len(self._plan.clients))),
            done=ledger.done,
        )

    def _stuck(self) -> str:
        ledger = self._ledger
        owned = ", ".join(str(len(ledger.assignment(member))) for member in range(len(self._members)))
        backlog = ", ".join(f"{left:,}" for left in ledger.backlog)
        words = "".join(f"\n{member.name}:{member.last_words}" for member in self._members if member.last_words)
        return (
            f"{self._plan.assignor}: the group is stuck with {ledger.done:,} of {sum(ledger.ends):,} records processed;"
            f" its members own {owned} partitions with {backlog} records left{words}"
        )


async def _listen(member: Child, number: int, ledger: Ledger, ready: asyncio.Event) -> None:
    """Enter into the books what a member reports. Raises `ChildDiedError` when it stops reporting."""
    async for line in member.lines():
        match decode(line):
            case Ready():
                ready.set()
            case Assigned(partitions):
                ledger.assigned(number, partitions)
            case Generation(generation):
                ledger.knows(number, generation)
            case Processed(ranges):
                for partition, start, stop in ranges:
                    ledger.processed(number, partition, start, stop)
    raise await member.died()


async def _in_time(seconds: float, waiting: Awaitable[object], what: str) -> None:
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        raise StuckError(f"{what} within {seconds:.0f} s") from None


def clients_of(assignor: str, members: int) -> tuple[str, ...]:
    """The clients of a group that an assignor is shown with: both mixed, unless the assignor is cooperative.

    Raises `UnknownAssignorError` for a name that there is not.
    """
    if strategy(assignor).cooperative:  # aiokafka is eager only
        return (KAFKA_PYTHON,) * members
    return tuple((KAFKA_PYTHON, AIOKAFKA)[number % 2] for number in range(members))


def new_group(
    cluster: Cluster, assignor: str, clients: Sequence[str], rate_per_s: float, *more: str
) -> tuple[str, dict[str, list[str]]]:
    """The id of a new group on a cluster, and the command of each member, by the name of its process."""
    group = f"{cluster.topic}-{assignor}-{uuid.uuid4().hex[:6]}"
    cluster.groups.append(group)
    return group, {
        f"{assignor}: member {number} ({client})": [
            "loadwise.demo.member",
            f"--client={client}",
            f"--client-id={number}-{client}",
            f"--bootstrap-servers={cluster.bootstrap_servers}",
            f"--topic={cluster.topic}",
            f"--group={group}",
            f"--assignor={assignor}",
            f"--rate={rate_per_s}",
            *more,
        ]
        for number, client in enumerate(clients, 1)
    }
