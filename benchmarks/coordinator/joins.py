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
import socket
import ssl
import struct
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from multiprocessing.connection import Connection
from typing import Any
from uuid import uuid4

from benchmarks.coordinator.brokers import Served, apache_kafka, ours, ours_safe
from benchmarks.coordinator.driver import TOPIC, DriverError
from benchmarks.coordinator.rates import row
from loadwise.protocol.consumer import Assignment, Subscription

PROCESSES = 4
HEARTBEAT_S = 0.1
_WAIT_S = 120
_REBALANCE_IN_PROGRESS = 27
_MEMBER_ID_REQUIRED = 79
_NOT_STABLE = -1
_ANSWER_HEAD = 9
"""The bytes of an answer before its error: the correlation id, tagged fields and the throttle time."""

Script = Generator[bytes, bytes, None]


class Member:
    """One connection, and its member's place in the group."""

    def __init__(self, address: tuple[str, int], group: int, group_id: str, tls: ssl.SSLContext | None) -> None:
        self.group = group
        self.member_id = b""
        self.generation = _NOT_STABLE
        """The generation in which it is synced."""
        self.beat_at_s = 0.0
        self.script: Script | None = None
        self.buffer = b""
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=address[0])
        self._group_id = _compact(group_id.encode())

    def join(self) -> Script:
        """Join, and get an assignment; the leader gives each member one partition."""
        self.generation = _NOT_STABLE
        timeouts = struct.pack(">ii", 60_000, 60_000)
        metadata = _compact(Subscription(topics=[TOPIC]).encode())
        protocols = _compact(b"consumer") + b"\2" + _compact(b"range") + metadata + b"\0"
        while True:
            told = _Reader((yield _frame(11, 9, self._group_id, timeouts, self._name, protocols, b"\0")))
            error, generation = told.error, told.unpack(">i")
            told.skip(3)  # protocol type and name, and the leader
            told.at += 1
            self.member_id = told.text() or self.member_id
            if error in (_MEMBER_ID_REQUIRED, _REBALANCE_IN_PROGRESS):
                continue
            _check(error, "JoinGroup")
            rows = []
            for number in range(told.length()):
                rows.append(_compact(told.text()) + _compact(Assignment(partitions={TOPIC: [number]}).encode()) + b"\0")
                told.skip(2)  # group instance id and metadata
                told.at += 1
            names = _compact(b"consumer") + _compact(b"range")
            number_of_rows = _varint(len(rows) + 1)
            place = struct.pack(">i", generation) + self._name
            told = _Reader((yield _frame(14, 5, self._group_id, place, names, number_of_rows, *rows)))
            if told.error != _REBALANCE_IN_PROGRESS:
                _check(told.error, "SyncGroup")
                self.generation = generation
                return

    def beat(self) -> Script:
        """Send a heartbeat, and join again if the group rebalances."""
        place = struct.pack(">i", self.generation) + self._name
        error = _Reader((yield _frame(12, 4, self._group_id, place))).error
        if error == _REBALANCE_IN_PROGRESS:
            yield from self.join()
        else:
            _check(error, "Heartbeat")

    def leave(self) -> Script:
        """Leave the group."""
        answer = yield _frame(13, 5, self._group_id, b"\2", self._name, b"\0\0")
        _check(_Reader(answer).error, "LeaveGroup")

    @property
    def _name(self) -> bytes:
        return _compact(self.member_id) + b"\0"


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


def _check(error: int, api: str) -> None:
    if error:
        raise DriverError(f"{api} got error {error}")


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
            [Member(self.address, group, group_id, self.tls) for _ in range(size)]
            for group, (group_id, size) in enumerate(self.groups)
        ]
        for member in _all(by_group):
            member.socket.setblocking(False)
            selector.register(member.socket, selectors.EVENT_READ, member)
        orders.send("connected")
        while (order := orders.recv()) != "end":
            above = [max((member.generation for member in group), default=0) for group in by_group]
            if order == "leave":
                for group, members in enumerate(by_group):
                    leaving = max(len(members) // 10, 1)
                    for member in members[:leaving]:
                        _begin(member, member.leave())
                    by_group[group] = members[leaving:]
            else:
                for member in _all(by_group):
                    _begin(member, member.join())
            self._wait_until_stable(selector, by_group, above)
            while any(member.script for member in _all(by_group)):  # heartbeats on their way
                for key, _ in selector.select(_WAIT_S):
                    _take(key.data)
            orders.send("stable")

    def _wait_until_stable(
        self, selector: selectors.BaseSelector, by_group: Sequence[Sequence[Member]], above: Sequence[int]
    ) -> None:
        """Serve the members until each group has a generation that is above its last one."""
        give_up = time.monotonic() + _WAIT_S
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
                raise DriverError(f"the groups are not stable after {_WAIT_S} s")
            for member in members:
                if member.script is None and member.beat_at_s <= now:
                    _begin(member, member.beat())
            for key, _ in selector.select(0.01):
                member = key.data
                if not _take(member):
                    self.synced[self.number] = time.monotonic()
                    member.beat_at_s = self.synced[self.number] + HEARTBEAT_S
                changed.add(member.group)

    def _all_agree(self) -> bool:
        seen, groups = self.stable[:], len(self.groups)
        return _NOT_STABLE not in seen and all(len(set(seen[group::groups])) == 1 for group in range(groups))


def _all(by_group: Sequence[Sequence[Member]]) -> Iterator[Member]:
    return chain.from_iterable(by_group)


def _begin(member: Member, script: Script) -> None:
    member.script = script
    member.socket.send(next(script))


def _take(member: Member) -> bool:
    """Read an answer and send the next request; False if the script has ended with it."""
    try:
        data = member.socket.recv(1 << 18)
        while isinstance(member.socket, ssl.SSLSocket) and member.socket.pending():
            data += member.socket.recv(1 << 18)
    except (ssl.SSLWantReadError, BlockingIOError):
        return True  # what came belongs to TLS itself, or is not whole yet
    if not data:
        raise DriverError("the broker hung up")
    data = member.buffer + data
    if len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        member.buffer = data
        return True
    member.buffer = b""
    assert member.script is not None
    try:
        member.socket.send(member.script.send(data[4:]))
    except StopIteration:
        member.script = None
        return False
    return True


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
    if not pipe.poll(_WAIT_S) or pipe.recv() != word:
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
