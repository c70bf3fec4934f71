"""``python -m benchmarks.coordinator.joins``: how fast groups form and shrink, beside Apache Kafka.

Members do what franz-go's do: JoinGroup v9 without a member id, again with the id from the answer, SyncGroup v5, and
heartbeats; they join again when an answer says that the group rebalances. Four processes share the members, so that
the clients limit the broker less than one process would. Members trickle in: the first generations of a group have a
part of them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import selectors
import ssl
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from multiprocessing.connection import Connection
from typing import Any
from uuid import uuid4

from benchmarks.coordinator.brokers import Served, apache_kafka, ours, ours_safe
from benchmarks.coordinator.driver import (
    MEMBER_ID_REQUIRED,
    REBALANCE_IN_PROGRESS,
    TOPIC,
    WAIT_S,
    DriverError,
    Member,
    Script,
    check,
    start,
    take,
)
from benchmarks.coordinator.rates import row
from loadwise.protocol.consumer import Assignment, Subscription

PROCESSES = 4
HEARTBEAT_S = 0.1
_NOT_STABLE = -1
_ANSWER_HEAD = 9
"""The bytes of an answer before its error: the correlation id, tagged fields and the throttle time."""


class GoMember(Member):
    """A member that sends what franz-go's send."""

    def __init__(self, address: tuple[str, int], group: int, group_id: str, tls: ssl.SSLContext | None) -> None:
        super().__init__(address, group_id, tls)
        self.group = group
        """The place of its group among those of the process."""
        self.beat_at_s = 0.0
        """When its next heartbeat is due."""

    def join(self) -> Script:
        """Join, and get an assignment; the leader gives each member one partition."""
        self.generation = _NOT_STABLE
        timeouts = struct.pack(">ii", 60_000, 60_000)
        metadata = _compact(Subscription(topics=[TOPIC]).encode())
        protocols = _compact(b"consumer") + b"\2" + _compact(b"range") + metadata + b"\0"
        while True:
            answer = _Reader((yield _frame(11, 9, self._group, timeouts, self._name, protocols, b"\0")))
            error, generation = answer.error, answer.unpack(">i")
            answer.skip(3)  # protocol type and name, and the leader
            answer.at += 1
            self.member_id = answer.text().decode() or self.member_id
            if error in (MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS):
                continue
            check(error, "JoinGroup")
            rows = []
            for number in range(answer.length()):
                rows.append(
                    _compact(answer.text()) + _compact(Assignment(partitions={TOPIC: [number]}).encode()) + b"\0"
                )
                answer.skip(2)  # group instance id and metadata
                answer.at += 1
            names = _compact(b"consumer") + _compact(b"range")
            number_of_rows = _varint(len(rows) + 1)
            place = struct.pack(">i", generation) + self._name
            answer = _Reader((yield _frame(14, 5, self._group, place, names, number_of_rows, *rows)))
            if answer.error != REBALANCE_IN_PROGRESS:
                check(answer.error, "SyncGroup")
                self.generation = generation
                return

    def follow(self) -> Script:
        """Send a heartbeat, and join again if the group rebalances."""
        place = struct.pack(">i", self.generation) + self._name
        error = _Reader((yield _frame(12, 4, self._group, place))).error
        if error == REBALANCE_IN_PROGRESS:
            yield from self.join()
        else:
            check(error, "Heartbeat")

    def leave(self) -> Script:
        """Leave the group."""
        answer = yield _frame(13, 5, self._group, b"\2", self._name, b"\0\0")
        check(_Reader(answer).error, "LeaveGroup")

    @property
    def _group(self) -> bytes:
        return _compact(self.group_id.encode())

    @property
    def _name(self) -> bytes:
        """The member id, and no group instance id."""
        return _compact(self.member_id.encode()) + b"\0"


class _Reader:
    """Reads an answer of a flexible version."""

    def __init__(self, answer: bytes) -> None:
        self._answer, self.at = answer, _ANSWER_HEAD
        self.error = self.unpack(">h")

    def unpack(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._answer, self.at)
        self.at += struct.calcsize(layout)
        return int(value)

    def length(self) -> int:
        size = shift = 0
        while True:
            byte = self._answer[self.at]
            self.at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return max(size - 1, 0)

    def text(self) -> bytes:
        size = self.length()
        self.at += size
        return self._answer[self.at - size : self.at]

    def skip(self, texts: int) -> None:
        for _ in range(texts):
            self.text()


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _compact(data: bytes) -> bytes:
    return _varint(len(data) + 1) + data


def _frame(key: int, version: int, *body: bytes) -> bytes:
    head = struct.pack(">hhih", key, version, 1, 3) + b"kgo\0"
    data = b"".join((head, *body, b"\0"))
    return struct.pack(">i", len(data)) + data


@dataclass(frozen=True)
class Clients:
    """What one process of clients is started with, and what it shares with the others."""

    number: int
    address: tuple[str, int]
    tls: ssl.SSLContext | None
    groups: Sequence[tuple[str, int]]
    """The group ids, and how many members of each this process has."""
    stable: Any
    """int[processes, groups]: the generation in which all members of a group in a process are synced."""
    synced: Any
    """float[processes]: when the last one was."""

    def work(self, orders: Connection) -> None:
        """Let all members ``join``, or a tenth of them ``leave``; answer once all the others are stable."""
        selector = selectors.DefaultSelector()
        by_group = [
            [GoMember(self.address, group, group_id, self.tls) for _ in range(size)]
            for group, (group_id, size) in enumerate(self.groups)
        ]
        for member in _all(by_group):
            selector.register(member.socket, selectors.EVENT_READ, member)
        orders.send("connected")
        while (order := orders.recv()) != "end":
            above = [max((member.generation for member in group), default=0) for group in by_group]
            if order == "leave":
                for group, members in enumerate(by_group):
                    leaving = max(len(members) // 10, 1)
                    for member in members[:leaving]:
                        start(member, lambda each: each.leave())
                    by_group[group] = members[leaving:]
            else:
                for member in _all(by_group):
                    start(member, lambda each: each.join())
            self._wait_until_stable(selector, by_group, above)
            while any(member.script for member in _all(by_group)):  # heartbeats on their way
                for key, _ in selector.select(WAIT_S):
                    _take(key.data)
            orders.send("stable")

    def _wait_until_stable(
        self, selector: selectors.BaseSelector, by_group: Sequence[Sequence[GoMember]], above: Sequence[int]
    ) -> None:
        """Serve the members until each group has a generation that is above its last one."""
        give_up = time.monotonic() + WAIT_S
        members = list(_all(by_group))
        changed = set(range(len(by_group)))
        while True:
            for group in changed:
                generations = {member.generation for member in by_group[group]}
                agreed = generations.pop() if len(generations) == 1 else _NOT_STABLE
                at = self.number * len(by_group) + group
                self.stable[at] = agreed if agreed > above[group] else _NOT_STABLE
            changed.clear()
            if self._all_agree():
                return
            now = time.monotonic()
            if now > give_up:
                raise DriverError(f"the groups are not stable after {WAIT_S} s")
            for member in members:
                if member.script is None and member.beat_at_s <= now:
                    start(member, lambda each: each.follow())
            for key, _ in selector.select(0.01):
                member = key.data
                if not _take(member):
                    self.synced[self.number] = time.monotonic()
                    member.beat_at_s = self.synced[self.number] + HEARTBEAT_S
                changed.add(member.group)

    def _all_agree(self) -> bool:
        seen, groups = self.stable[:], len(self.groups)
        return _NOT_STABLE not in seen and all(len(set(seen[group::groups])) == 1 for group in range(groups))


def _take(member: GoMember) -> bool:
    """Take what has come for a member; False if its script has ended."""
    goes_on = take(member)
    if not goes_on:
        member.script = None
    return goes_on


def _all(by_group: Sequence[Sequence[GoMember]]) -> Iterator[GoMember]:
    return chain.from_iterable(by_group)


def measure(served: Served, groups: int, members: int) -> None:
    """Print how long ``groups`` of ``members`` each take until all are stable, and again after a tenth has left."""
    host, _, port = served.bootstrap.partition(",")[0].rpartition(":")
    ids = [f"joins-{uuid4()}" for _ in range(groups)]
    context = multiprocessing.get_context("fork")
    stable = context.Array("i", [_NOT_STABLE] * (PROCESSES * groups), lock=False)
    synced = context.Array("d", [0.0] * PROCESSES, lock=False)
    pipes, processes = [], []
    for number in range(PROCESSES):
        share = [(group_id, members // PROCESSES + (number < members % PROCESSES)) for group_id in ids]
        clients = Clients(number, (host, int(port)), served.tls, share, stable, synced)
        pipe, theirs = context.Pipe()
        pipes.append(pipe)
        processes.append(context.Process(target=clients.work, args=(theirs,), daemon=True))
        processes[-1].start()
    try:
        for pipe in pipes:
            _expect(pipe, "connected")
        for order, what in (("join", "join, to stable"), ("leave", "10 % leave, to stable")):
            for place in range(len(stable)):
                stable[place] = _NOT_STABLE
            before, start = served.cpu_s(), time.monotonic()
            for pipe in pipes:
                pipe.send(order)
            for pipe in pipes:
                _expect(pipe, "stable")
            size = f"{members:,} members" if groups == 1 else f"{groups} groups of {members}"
            figure = f"{max(synced) - start:.2f} s, generation {max(stable[:])}"
            row(served, f"{size} {what}", figure, served.cpu_s() - before)
        for pipe in pipes:
            pipe.send("end")
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _expect(pipe: Connection, word: str) -> None:
    if not pipe.poll(WAIT_S) or pipe.recv() != word:
        raise DriverError("a process of clients has failed")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a line for each row."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shapes", default="1x1000,100x50", help="groups x members (default: 1x1000,100x50)")
    options.add_argument("--rounds", type=int, default=3, help="how often each shape is played (default: 3)")
    options.add_argument("--no-kafka", action="store_true", help="leave Apache Kafka out")
    chosen = options.parse_args(arguments)
    shapes = [tuple(map(int, shape.split("x"))) for shape in chosen.shapes.split(",")]
    print("over sockets, from four processes; the last column is the broker's processor time")
    with ExitStack() as stack:
        brokers = [stack.enter_context(ours(uvloop=True)), stack.enter_context(ours(uvloop=False))]
        brokers += [stack.enter_context(ours_safe(tls=False)), stack.enter_context(ours_safe(disk=False))]
        peer = None if chosen.no_kafka else stack.enter_context(apache_kafka())
        for groups, members in shapes:
            for _ in range(chosen.rounds):
                for served in [*brokers, peer] if peer else brokers:
                    measure(served, groups, members)


if __name__ == "__main__":
    main()
