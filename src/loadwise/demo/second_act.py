"""The second act: a stream that never ends, read by a group under each assignor at the same time.

Records arrive all the time. After a while the hot keys move, and later one member of each group is killed. What counts
is the lag of the worst member: how late the slowest part of the group is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from loadwise.demo.arrivals import PARTITIONS, Arrivals
from loadwise.demo.cluster import Cluster
from loadwise.demo.errors import StuckError
from loadwise.demo.group import clients_of, new_group
from loadwise.demo.live_group import LiveGroup, Moment
from loadwise.demo.messages import Order
from loadwise.demo.process import children, listening
from loadwise.demo.publish import LiveProducer

MEMBERS = 3
VICTIM = 1
"""The member that is killed. It is not the first, which most clients make the leader."""
_TICK_S = 0.05
_SAMPLE_S = 0.5
_JOIN_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What happens, and when, in seconds since the stream began."""

    assignors: Sequence[str]
    rate_per_s: float = 600.0
    """Records that each member can process in a second."""
    arrival_per_s: float = 900.0
    """Records that arrive in a second."""
    shift_s: float = 25.0
    crash_s: float = 65.0
    end_s: float = 100.0

    @classmethod
    def of_length(cls, end_s: float, assignors: Sequence[str], *, speed: float = 1.0) -> Script:
        """The same in more or less time, and at a part of the rates on a slow machine."""
        usual = cls(assignors=assignors)
        return replace(
            usual,
            rate_per_s=usual.rate_per_s * speed,
            arrival_per_s=usual.arrival_per_s * speed,
            shift_s=0.25 * end_s,
            crash_s=0.65 * end_s,
            end_s=end_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How one group did."""

    assignor: str
    moments: Sequence[Moment]
    rebalances: int
    """Since the stream began. One is due to the member that died."""
    script: Script

    @property
    def late_s(self) -> float:
        """The mean lag of the worst member, as seconds of the whole traffic."""
        return sum(moment.worst_lag for moment in self.moments) / len(self.moments) / self.script.arrival_per_s

    @property
    def peak(self) -> int:
        """The largest lag of any member after the hot keys moved."""
        return max(moment.worst_lag for moment in self.moments if moment.at_s >= self.script.shift_s)

    def recovered_s(self, event_s: float, until_s: float) -> float | None:
        """Seconds after an event until every lag was under one second of traffic and stayed there; None if never."""
        span = [moment for moment in self.moments if event_s <= moment.at_s < until_s]
        calm = None
        for moment in reversed(span):
            if moment.worst_lag > self.script.arrival_per_s:
                break
            calm = moment.at_s - event_s
        return calm


async def play(cluster: Cluster, script: Script, show: Callable[[float], None]) -> list[Course]:
    """Run all groups beside each other; the one that was least late comes first.

    ``show`` is called with the seconds since the stream began. Raises `DemoError`.
    """
    producer = LiveProducer(cluster.bootstrap_servers, cluster.topic)
    async with _groups(cluster, script) as groups:
        clock = asyncio.get_running_loop().time
        await _all_joined(groups, clock)
        for group in groups:
            group.first_generation = group.generation
        arrivals = Arrivals(rate_per_s=script.arrival_per_s, shift_s=script.shift_s)
        began_s, sampled_s, crashed = clock(), 0.0, False
        while (now_s := clock() - began_s) < script.end_s:
            producer.produce_up_to(arrivals.until(now_s))
            if not crashed and now_s >= script.crash_s:
                crashed = True
                for group in groups:
                    group.kill(VICTIM)
            if now_s >= sampled_s:
                sampled_s += _SAMPLE_S
                for group in groups:
                    group.sample(now_s, producer.ends)
                show(now_s)
            await asyncio.sleep(_TICK_S)
        producer.close()
    courses = [
        Course(assignor=group.assignor, moments=group.moments, rebalances=group.rebalances, script=script)
        for group in groups
    ]
    return sorted(courses, key=lambda course: course.late_s)


def headline(courses: Sequence[Course]) -> str:
    """What happened after the hot keys moved, in a sentence."""
    script = courses[0].script
    told = []
    for course in courses:
        back_s = course.recovered_s(script.shift_s, script.crash_s)
        told.append(f"{course.assignor} {'not before the crash' if back_s is None else f'after {back_s:.0f} s'}")
    return f"After the hot keys moved, no member was more than a second of traffic behind: {', '.join(told)}."


def in_short(courses: Sequence[Course]) -> str:
    """The second act in a sentence, the best first; another says where chance decided."""
    told = ", ".join(f"{course.late_s:.1f} s under {course.assignor}" for course in courses)
    text = f"How far the worst member was behind, on average: {told}."
    worst_s = max(course.late_s for course in courses)
    if any("sticky" in course.assignor and course.late_s < worst_s / 2 for course in courses):
        text += (
            " With cooperative-sticky, chance decides whether one member has both hot partitions; this time none had."
        )
    return text


@asynccontextmanager
async def _groups(cluster: Cluster, script: Script) -> AsyncIterator[list[LiveGroup]]:
    commands: dict[str, list[str]] = {}
    for name in script.assignors:
        _, of_group = new_group(cluster, name, clients_of(name, MEMBERS), script.rate_per_s, "--live")
        commands |= of_group
    async with children(commands) as members:
        groups = [
            LiveGroup(assignor=name, members=members[index * MEMBERS : (index + 1) * MEMBERS], partitions=PARTITIONS)
            for index, name in enumerate(script.assignors)
        ]
        async with listening(group.listen(number) for group in groups for number in range(MEMBERS)):
            yield groups


async def _all_joined(groups: Sequence[LiveGroup], clock: Callable[[], float]) -> None:
    deadline_s = clock() + _JOIN_S
    for group in groups:
        try:
            async with asyncio.timeout_at(deadline_s):
                await asyncio.gather(*(event.wait() for event in group.ready))
        except TimeoutError:
            raise StuckError(f"a member's process of {group.assignor} did not start within {_JOIN_S:.0f} s") from None
        for member in group.members:
            await member.order(Order.JOIN)
            await member.order(Order.GO)
    while not all(group.is_complete for group in groups):
        if clock() > deadline_s:
            waiting = ", ".join(group.assignor for group in groups if not group.is_complete)
            raise StuckError(f"partitions have no owner after {_JOIN_S:.0f} s in the groups of {waiting}")
        await asyncio.sleep(_TICK_S)
