"""A load driver over real sockets: many members on one thread, each a connection and a script of requests.

Classic members send what franz-go's send: JoinGroup v9 without a member id, again with the id from the answer,
SyncGroup v5, and heartbeats; they join again when an answer says that the group rebalances. The driver is made to take
less of a processor than what it measures: it puts its messages together itself, and looks at little of most answers.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Self, TypeAlias
from uuid import uuid4

from kafka.protocol.api_message import ApiMessage

from loadwise.protocol.consumer import Assignment, Subscription
from loadwise.running_group.kafka_python_messages import FromSchema

Script: TypeAlias = Generator[bytes, bytes, None]
"""Gives requests as frames, and is given the answers without their sizes."""

TOPIC = "benchmark"
PARTITIONS = 1000
WAIT_S = 120
_CALM_S = 0.2
"""Where nobody is answered for so long, members that are through look after their group."""
_LOOK_AFTER_S = 1.0
"""They do so this often in any case: others may ask on and on, and be answered that they have to wait."""
REBALANCE_IN_PROGRESS = 27
MEMBER_ID_REQUIRED = 79
NOT_STABLE = -1
_ANSWER_HEAD = 9
"""The bytes of an answer before its error: the correlation id, tagged fields and the throttle time."""


class ConsumerGroupHeartbeatRequest(ApiMessage, metaclass=FromSchema):  # type: ignore[misc]  # kafka-python is untyped
    """A member's heartbeat (KIP-848)."""


class ConsumerGroupHeartbeatResponse(ApiMessage, metaclass=FromSchema):  # type: ignore[misc]  # kafka-python is untyped
    """What it is answered."""


class DriverError(Exception):
    """The broker answered with an error, hung up or did not answer; the message says which."""


class Member:
    """One connection, and where its member stands in the group."""

    def __init__(self, address: tuple[str, int], group_id: str) -> None:
        self.group_id = group_id
        self.member_id = ""
        self.generation = NOT_STABLE
        self.assigned: list[Any] | None = None
        """What a member of KIP-848 was given last; None before it has joined."""
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.script: Script | None = None
        self.buffer = b""

    # ---- scripts ----

    def join(self) -> Script:
        """Join, and get an assignment; the leader gives each member one partition."""
        self.generation = NOT_STABLE
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

    def beat(self, until_s: float, latencies: list[float]) -> Script:
        """Send heartbeats one after the other until a time, and note how long each answer took."""
        frame = self._heartbeat()
        clock = time.perf_counter
        while (sent := clock()) < until_s:
            answer = yield frame
            latencies.append(clock() - sent)
            if answer[_ANSWER_HEAD : _ANSWER_HEAD + 2] != b"\0\0":
                check(_Reader(answer).error, "Heartbeat")

    def follow(self) -> Script:
        """Send a heartbeat, and join again if the group rebalances."""
        error = _Reader((yield self._heartbeat())).error
        if error == REBALANCE_IN_PROGRESS:
            yield from self.join()
        else:
            check(error, "Heartbeat")

    def leave(self) -> Script:
        """Leave the group."""
        answer = yield _frame(13, 5, self._group, b"\2", self._name, b"\0\0")
        check(_Reader(answer).error, "LeaveGroup")

    def join_consumer_group(self, members: int) -> Script:
        """Join by KIP-848 and do what each answer tells, until this member has its share of the topic's partitions.

        A member that is in already goes on: it may have been given its share before the last members came, and others
        wait for what it is to give up then.
        """
        self.member_id = self.member_id or str(uuid4())
        topic = ConsumerGroupHeartbeatRequest.TopicPartitions
        while True:
            assigned = self.assigned
            owned = [topic(topic_id=each.topic_id, partitions=each.partitions) for each in assigned or ()]
            request = ConsumerGroupHeartbeatRequest(
                version=1, group_id=self.group_id, member_id=self.member_id, member_epoch=max(self.generation, 0),
                instance_id=None, rack_id=None, rebalance_timeout_ms=60_000, server_assignor=None,
                subscribed_topic_names=[TOPIC] if assigned is None else None, subscribed_topic_regex=None,
                topic_partitions=owned,
            )  # fmt: skip
            request.with_header(1, "benchmark")
            answer = yield bytes(request.encode(header=True, framed=True))
            told = ConsumerGroupHeartbeatResponse.decode(answer, version=1, header=True)
            check(told.error_code, "ConsumerGroupHeartbeat")
            self.generation = told.member_epoch
            if told.assignment is not None:
                self.assigned = told.assignment.topic_partitions
            elif assigned is not None:
                count = sum(len(each.partitions) for each in assigned)
                if PARTITIONS // members <= count <= -(-PARTITIONS // members):
                    return

    def _heartbeat(self) -> bytes:
        return _frame(12, 4, self._group, struct.pack(">i", self.generation) + self._name)

    @property
    def _group(self) -> bytes:
        return _compact(self.group_id.encode())

    @property
    def _name(self) -> bytes:
        """The member id, and no group instance id."""
        return _compact(self.member_id.encode()) + b"\0"


class Driver:
    """Runs the scripts of many members at once."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._selector = selectors.DefaultSelector()

    def members(self, number: int, group_id: str) -> list[Member]:
        """So many members of a group, connected."""
        made = [Member(self._address, group_id) for _ in range(number)]
        for member in made:
            self._selector.register(member.socket, selectors.EVENT_READ, member)
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close([key.data for key in self._selector.get_map().values()])
        self._selector.close()

    def close(self, members: Iterable[Member]) -> None:
        """Hang up."""
        for member in members:
            self._selector.unregister(member.socket)
            member.socket.close()

    def join(self, members: Sequence[Member]) -> float:
        """Let members join until all are stable, and answer with how many seconds that took. Raises `DriverError`.

        A broker without an initial rebalance delay may complete a generation before the last members have joined. They
        wait for everybody who is in it already, so those look after their group whenever nothing else happens.
        """
        return self.run(members, Member.join, meanwhile=Member.follow)

    def run(
        self,
        members: Sequence[Member],
        script: Callable[[Member], Script],
        *,
        meanwhile: Callable[[Member], Script] | None = None,
    ) -> float:
        """Let members do what a script tells, and answer with how many seconds that took. Raises `DriverError`.

        While nobody is answered, and once a second, each member whose script has ended runs ``meanwhile``.
        """
        began_s = time.perf_counter()
        running = {member for member in members if start(member, script)}
        give_up = began_s + WAIT_S
        looked_after = began_s
        while running:
            answered = self._selector.select(_CALM_S)
            running.difference_update([key.data for key, _ in answered if not take(key.data)])
            if meanwhile is not None and (not answered or time.perf_counter() > looked_after + _LOOK_AFTER_S):
                looked_after = time.perf_counter()
                running.update([member for member in members if member not in running and start(member, meanwhile)])
            if time.perf_counter() > give_up:
                raise DriverError(f"{len(running)} of {len(members)} members are not through after {WAIT_S} s")
        return time.perf_counter() - began_s


def start(member: Member, script: Callable[[Member], Script]) -> bool:
    """Send the first request of a script; False if it has none."""
    member.script = script(member)
    frame = next(member.script, None)
    if frame is not None:
        member.socket.send(frame)
    return frame is not None


def take(member: Member) -> bool:
    """Read an answer and send the next request; False if the script has ended with it."""
    data = member.socket.recv(1 << 18)
    if not data:
        raise DriverError(f"the broker hung up on {member.member_id}")
    data = member.buffer + data if member.buffer else data
    if len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        member.buffer = data
        return True
    member.buffer = b""
    assert member.script is not None
    try:
        member.socket.send(member.script.send(data[4:]))
    except StopIteration:
        return False
    return True


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


def check(error: int, api: str) -> None:
    """Raise `DriverError` for the error of an answer."""
    if error:
        raise DriverError(f"{api} got error {error}")
