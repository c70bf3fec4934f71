"""A load driver over real sockets: many members on one thread, each a connection and a script of requests.

It is made to take less of a processor than what it measures: requests that repeat are bytes that were made before, and
of their answers only the error code is looked at.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import struct
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Self, TypeAlias
from uuid import uuid4

from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)

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
_ERROR = struct.Struct(">h")
_ERROR_AT = 9
"""Where a Heartbeat v4 answer has its error: after the correlation id, tagged fields and the throttle time."""


class ConsumerGroupHeartbeatRequest(ApiMessage, metaclass=FromSchema):  # type: ignore[misc]  # kafka-python is untyped
    """A member's heartbeat (KIP-848)."""


class ConsumerGroupHeartbeatResponse(ApiMessage, metaclass=FromSchema):  # type: ignore[misc]  # kafka-python is untyped
    """What it is answered."""


class DriverError(Exception):
    """The broker answered with an error, hung up or did not answer; the message says which."""


class Member:
    """One connection, and where its member stands in the group."""

    def __init__(self, address: tuple[str, int], group_id: str, tls: ssl.SSLContext | None = None) -> None:
        self.group_id = group_id
        self.member_id = ""
        self.generation = -1
        self.assigned: list[Any] | None = None
        """What a member of KIP-848 was given last; None before it has joined."""
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=address[0])
        self.socket.setblocking(False)
        self.script: Script | None = None
        self.buffer = b""

    # ---- scripts ----

    def join(self) -> Script:
        """Join as real clients do, with an id first, and get an assignment; the leader gives each one partition."""
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(
            name="range", metadata=Subscription(topics=[TOPIC]).encode()
        )
        while True:
            answer = yield _frame(
                JoinGroupRequest(
                    version=7, group_id=self.group_id, session_timeout_ms=60_000, rebalance_timeout_ms=60_000,
                    member_id=self.member_id, group_instance_id=None, protocol_type="consumer", protocols=[protocol],
                )
            )  # fmt: skip
            joined = JoinGroupResponse.decode(answer, version=7, header=True)
            self.member_id = joined.member_id or self.member_id
            if joined.error_code in (MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS):
                continue
            check(joined.error_code, "JoinGroup")
            self.generation = joined.generation_id
            row = SyncGroupRequest.SyncGroupRequestAssignment
            assignments = [
                row(member_id=each.member_id, assignment=Assignment(partitions={TOPIC: [number]}).encode())
                for number, each in enumerate(joined.members)
            ]
            answer = yield _frame(
                SyncGroupRequest(
                    version=5, group_id=self.group_id, generation_id=self.generation, member_id=self.member_id,
                    group_instance_id=None, protocol_type="consumer", protocol_name="range", assignments=assignments,
                )
            )  # fmt: skip
            synced = SyncGroupResponse.decode(answer, version=5, header=True)
            if synced.error_code != REBALANCE_IN_PROGRESS:
                check(synced.error_code, "SyncGroup")
                return

    def beat(self, until_s: float, latencies: list[float]) -> Script:
        """Send heartbeats one after the other until a time, and note how long each answer took."""
        frame = self.heartbeat()
        clock = time.perf_counter
        while (sent := clock()) < until_s:
            answer = yield frame
            latencies.append(clock() - sent)
            if answer[_ERROR_AT : _ERROR_AT + 2] != b"\0\0":
                raise DriverError(f"a heartbeat got error {_ERROR.unpack_from(answer, _ERROR_AT)[0]}")

    def follow(self) -> Script:
        """Send one heartbeat, and join again if it tells of a rebalance, as the thread of a real client does."""
        (error,) = _ERROR.unpack_from((yield self.heartbeat()), _ERROR_AT)
        if error == REBALANCE_IN_PROGRESS:
            yield from self.join()
        else:
            check(error, "Heartbeat")

    def rejoin(self) -> Script:
        """Send heartbeats until one tells of a rebalance, then join again."""
        frame = self.heartbeat()
        while True:
            (error,) = _ERROR.unpack_from((yield frame), _ERROR_AT)
            if error == REBALANCE_IN_PROGRESS:
                break
            check(error, "Heartbeat")
        yield from self.join()

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
            answer = yield _frame(
                ConsumerGroupHeartbeatRequest(
                    version=1, group_id=self.group_id, member_id=self.member_id, member_epoch=max(self.generation, 0),
                    instance_id=None, rack_id=None, rebalance_timeout_ms=60_000, server_assignor=None,
                    subscribed_topic_names=[TOPIC] if assigned is None else None, subscribed_topic_regex=None,
                    topic_partitions=owned,
                )
            )  # fmt: skip
            told = ConsumerGroupHeartbeatResponse.decode(answer, version=1, header=True)
            check(told.error_code, "ConsumerGroupHeartbeat")
            self.generation = told.member_epoch
            if told.assignment is not None:
                self.assigned = told.assignment.topic_partitions
            elif assigned is not None:
                count = sum(len(each.partitions) for each in assigned)
                if PARTITIONS // members <= count <= -(-PARTITIONS // members):
                    return

    def leave(self) -> Script:
        """Leave the group."""
        row = LeaveGroupRequest.MemberIdentity
        members = [row(member_id=self.member_id, group_instance_id=None, reason=None)]
        yield _frame(LeaveGroupRequest(version=5, group_id=self.group_id, members=members))

    def heartbeat(self) -> bytes:
        """A heartbeat of this member as it goes over the wire."""
        return _frame(
            HeartbeatRequest(
                version=4, group_id=self.group_id, generation_id=self.generation, member_id=self.member_id,
                group_instance_id=None,
            )
        )  # fmt: skip


class Driver:
    """Runs the scripts of many members at once."""

    def __init__(self, bootstrap: str, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        host, _, port = bootstrap.partition(",")[0].rpartition(":")
        self._address = (host, int(port))
        self._selector = selectors.DefaultSelector()

    def members(self, number: int, group_id: str) -> list[Member]:
        """So many members of a group, connected."""
        made = [Member(self._address, group_id, self._tls) for _ in range(number)]
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
    try:
        data = member.socket.recv(1 << 18)
        while isinstance(member.socket, ssl.SSLSocket) and member.socket.pending():
            data += member.socket.recv(1 << 18)
    except ssl.SSLWantReadError:
        return True  # what came belongs to TLS itself, or is not whole yet
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


def _frame(request: Any) -> bytes:
    request.with_header(1, "benchmark")
    return bytes(request.encode(header=True, framed=True))


def check(error: int, api: str) -> None:
    """Raise `DriverError` for the error of an answer."""
    if error:
        raise DriverError(f"{api} got error {error}")
