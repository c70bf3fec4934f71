"""Members as programs in virtual time: each spends its time in its own way, and what it measures of itself follows.

A program is a generator that yields the seconds for which it does something. It polls as the clients do, and its client
tells `loadwise.assignor.live.busy.BusyTime` of each poll as our adapters tell it. So a program that waits before its
poll, or hands its records to others, seems as fast to itself as it would in production.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Protocol

Steps = Generator[float, None, None]
Given = Sequence[tuple[int, int, int]]
"""What a poll has given: partition, first offset, and the offset behind the last one."""

_POLL_S = 0.2
_BUFFER = 300
_TASKS, _THREADS, _QUEUE = 50, 8, 200
_POOL_COMMIT_S = 2.0
_RARE, _RARE_S = 1000, 1.0
_PAUSE_EVERY_S, _PAUSE_S = 45.0, 3.0
_AT_ONCE = 500
_TURN_S, _SLOWER = 7.0, 0.6


class Consumer(Protocol):
    """What a program sees of its client."""

    speed: float
    """Records that the program processes in a second, where it is never idle; it may change."""
    cost: list[float]
    """What a record of each partition costs."""
    generation: int
    """Changes when partitions may have come or gone: what is in hand is not the program's any more."""

    @property
    def now_s(self) -> float:
        """The time."""

    def poll(self, most: int, timeout_s: float) -> Generator[float, None, Given]:
        """Ask for records."""

    def commit(self, offsets: Mapping[int, int], *, noted: bool = True) -> None:
        """Commit by hand; ``noted``: by the client, which writes a note beside the offsets."""


Program = Callable[[Consumer], Steps]


def in_line(most: int) -> Program:
    """Sleep for what a poll has given, up to so many records; 1: ask for each, as with aiokafka's ``getone``."""

    def run(member: Consumer) -> Steps:
        while True:
            given = yield from member.poll(most, _POLL_S)
            yield _work(member, given) / member.speed

    return run


def bucket(member: Consumer) -> Steps:
    """Wait for tokens before each poll, and process what it gives at once, as a program with a rate limit does."""
    tokens, at_s = 0.0, member.now_s
    while True:
        wanted = max(1, int(member.speed * 0.025))
        for _ in range(2):
            tokens = min(member.speed * 0.1, tokens + (member.now_s - at_s) * member.speed)
            at_s = member.now_s
            if tokens < wanted:
                yield (wanted - tokens) / member.speed
        given = yield from member.poll(max(1, int(tokens)), 0.05)
        tokens -= _work(member, given)


def batch(member: Consumer) -> Steps:
    """Collect 300 records, or what comes in a second, and write them, as a bulk insert does."""
    collected, work, since_s = 0, 0.0, member.now_s
    while True:
        given = yield from member.poll(100, 0.1)
        collected, work = collected + _count(given), work + _work(member, given)
        if collected >= _BUFFER or member.now_s - since_s >= 1.0:
            yield work / member.speed
            collected, work, since_s = 0, 0.0, member.now_s


def tasks(member: Consumer) -> Steps:
    """Start a task for each record, 50 at a time at most, as with a semaphore in asyncio."""
    ends: list[float] = []
    while True:
        given = yield from member.poll(100, _POLL_S)
        for partition in (partition for partition, start, stop in given for _ in range(start, stop)):
            while ends and ends[0] <= member.now_s:
                heapq.heappop(ends)
            if len(ends) >= _TASKS:
                yield ends[0] - member.now_s
                heapq.heappop(ends)
            heapq.heappush(ends, member.now_s + _TASKS * member.cost[partition] / member.speed)


def pool(member: Consumer) -> Steps:
    """Hand records to eight threads by a bounded queue, pause while it is full, commit every 2 s what is done."""
    queue: deque[tuple[int, int]] = deque()
    ends: list[tuple[float, int, int]] = []
    done: dict[int, int] = {}
    generation, committed_s = member.generation, member.now_s
    while True:
        given: Given = ()
        if len(queue) < _QUEUE:
            given = yield from member.poll(100, 0.05)
        else:  # it polls, and gets nothing, since all its partitions are paused
            yield from member.poll(0, 0.05)
        if generation != member.generation:
            queue.clear()
            ends.clear()
            done.clear()
            generation = member.generation
        queue.extend((partition, offset) for partition, start, stop in given for offset in range(start, stop))
        while ends and ends[0][0] <= member.now_s:
            free_s, partition, offset = heapq.heappop(ends)
            done[partition] = max(done.get(partition, 0), offset + 1)
            if queue:
                heapq.heappush(ends, (free_s + _THREADS * member.cost[queue[0][0]] / member.speed, *queue.popleft()))
        while queue and len(ends) < _THREADS:
            cost = member.cost[queue[0][0]]
            heapq.heappush(ends, (member.now_s + _THREADS * cost / member.speed, *queue.popleft()))
        if member.now_s - committed_s >= _POOL_COMMIT_S and done:
            committed_s = member.now_s
            member.commit(done)


def by_hand(every_s: float) -> Program:
    """Sleep for what a poll has given, and commit by hand so often."""

    def run(member: Consumer) -> Steps:
        committed_s, generation, done = member.now_s, member.generation, dict[int, int]()
        while True:
            given = yield from member.poll(100, _POLL_S)
            yield _work(member, given) / member.speed
            if generation != member.generation:
                generation = member.generation
                done.clear()
                continue
            done |= {partition: stop for partition, _, stop in given}
            if member.now_s - committed_s >= every_s and done:
                committed_s = member.now_s
                member.commit(done)

    return run


def transactions(member: Consumer) -> Steps:
    """Process what a poll has given, and commit it within a transaction, where no note can be."""
    while True:
        given = yield from member.poll(_AT_ONCE, _POLL_S)
        generation = member.generation
        yield _work(member, given) / member.speed
        if given and generation == member.generation:
            member.commit({partition: stop for partition, _, stop in given}, noted=False)


def workers(member: Consumer) -> Steps:
    """Give each partition a worker, as with ``asyncio.gather``; each commits for itself, the poll waits for all."""
    while True:
        given = yield from member.poll(_AT_ONCE, _POLL_S)
        generation, before = member.generation, 0.0
        shortest_first = sorted(((stop - start) * member.cost[at], at, stop) for at, start, stop in given)
        for number, (count, partition, stop) in enumerate(shortest_first):
            yield (count - before) * (len(shortest_first) - number) / member.speed
            before = count
            if generation == member.generation:
                member.commit({partition: stop})


def one_slow(member: Consumer) -> Steps:
    """One record of a thousand takes a second; the others are so much faster that the mean is the same."""
    left = _RARE
    while True:
        given = yield from member.poll(100, _POLL_S)
        left -= _count(given)
        yield _work(member, given) * (1 / member.speed - _RARE_S / _RARE)
        if left <= 0:
            left += _RARE
            yield _RARE_S


def pausing(member: Consumer) -> Steps:
    """Stand still for three seconds every now and then, as a collection of garbage makes it."""
    next_s = member.now_s + _PAUSE_EVERY_S
    while True:
        given = yield from member.poll(100, _POLL_S)
        yield _work(member, given) / member.speed
        if member.now_s >= next_s:
            next_s += _PAUSE_EVERY_S
            yield _PAUSE_S


def executor(member: Consumer) -> Steps:
    """Work on what a poll has given in another thread, paused meanwhile, as with ``asyncio.to_thread``; then commit."""
    while True:
        given = yield from member.poll(_AT_ONCE, _POLL_S)
        generation, done_s = member.generation, member.now_s + _work(member, given) / member.speed
        while member.now_s < done_s:
            yield from member.poll(0, 0.1)
        if given and generation == member.generation:
            member.commit({partition: stop for partition, _, stop in given})


def alternating(member: Consumer) -> Steps:
    """Write to a database that is slower and faster by turns, for all members at the same time."""
    while True:
        given = yield from member.poll(100, _POLL_S)
        slow = member.now_s % (2 * _TURN_S) < _TURN_S
        yield _work(member, given) / (member.speed * (_SLOWER if slow else 2 - _SLOWER))


PROGRAMS: Mapping[str, Program] = {
    "in line": in_line(100),
    "record by record": in_line(1),
    "bucket": bucket,
    "batch": batch,
    "tasks": tasks,
    "pool": pool,
    "by hand, 5 s": by_hand(5.0),
    "one slow in 1,000": one_slow,
    "pauses of 3 s": pausing,
    "executor": executor,
    "large polls": in_line(_AT_ONCE),
    "transactions": transactions,
    "workers": workers,
    "by hand, 60 s": by_hand(60.0),
    "alternating": alternating,
}
COMMITS_BY_HAND = {"pool", "by hand, 5 s", "by hand, 60 s", "executor", "transactions", "workers"}
"""Programs whose clients do not commit by themselves."""


def _work(member: Consumer, given: Given) -> float:
    """The records as so many of cost 1."""
    return sum((stop - start) * member.cost[partition] for partition, start, stop in given)


def _count(given: Given) -> int:
    return sum(stop - start for _, start, stop in given)
