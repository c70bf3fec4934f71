"""A load driver over real sockets: many members on one thread, each a connection and a script of requests.

Classic members send what franz-go's send: JoinGroup v9 without a member id, again with the id from the answer,
SyncGroup v5, and heartbeats; they join again when an answer says that the group rebalances. The driver is made to take
less of a processor than what it measures: it sends a heartbeat's bytes again, and looks at little of the answers.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import struct
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import cache
from typing import Any, Self, TypeAlias
from uuid import uuid4

from loadwise.protocol.consumer import Assignment, Subscription
from loadwise.protocol.decoding import decoder
from loadwise.protocol.encoding import encoder
from loadwise.protocol.kafka_messages import ConsumerGroupHeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from loadwise.protocol.messages import Api

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
VERSIONS = {"JoinGroup": 9, "SyncGroup": 5, "Heartbeat": 4, "LeaveGroup": 5, "ConsumerGroupHeartbeat": 1}
_SUBSCRIBED = Subscription(topics=[TOPIC]).encode()


class DriverError(Exception):
    """The broker answered with an error, hung up or did not answer; the message says which."""


class Member:
    """One connection, and where its member stands in the group."""

    def __init__(self, address: tuple[str, int], group_id: str, tls: ssl.SSLContext | None = None) -> None:
        self.group_id = group_id
        self.member_id = ""
        self.generation = NOT_STABLE
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
        """Join, and get an assignment; the leader gives each member one partition."""
        self.generation = NOT_STABLE
        protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=_SUBSCRIBED)]
        timeouts = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000}
        while True:
            joined = yield from self._ask("JoinGroup", protocol_type="consumer", protocols=protocols, **timeouts)
            self.member_id = joined.member_id or self.member_id
            if joined.error_code in (MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS):
                continue
            check(joined.error_code, "JoinGroup")
            rows = [
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=each.member_id, assignment=Assignment(partitions={TOPIC: [number]}).encode()
                )
                for number, each in enumerate(joined.members)
            ]
            synced = yield from self._ask(
                "SyncGroup",
                generation_id=joined.generation_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=rows,
            )
            if synced.error_code != REBALANCE_IN_PROGRESS:
                check(synced.error_code, "SyncGroup")
                self.generation = joined.generation_id
                return

    def beat(self, until_s: float, latencies: list[float]) -> Script:
        """Send heartbeats one after the other until a time, and note how long each answer took."""
        frame = self._frame("Heartbeat", generation_id=self.generation)
        good, clock = None, time.perf_counter
        while (sent := clock()) < until_s:
            answer = yield frame
            latencies.append(clock() - sent)
            if answer != good:
                check(_response("Heartbeat", answer).error_code, "Heartbeat")
                good = answer

    def follow(self) -> Script:
        """Send a heartbeat, and join again if the group rebalances."""
        told = yield from self._ask("Heartbeat", generation_id=self.generation)
        if told.error_code == REBALANCE_IN_PROGRESS:
            yield from self.join()
        else:
            check(told.error_code, "Heartbeat")

    def leave(self) -> Script:
        """Leave the group."""
        leaving = Api.of("LeaveGroup").request.MemberIdentity(member_id=self.member_id)
        answer = yield _frame("LeaveGroup", group_id=self.group_id, members=[leaving])
        check(_response("LeaveGroup", answer).error_code, "LeaveGroup")

    def join_consumer_group(self, members: int) -> Script:
        """Join by KIP-848 and do what each answer tells, until this member has its share of the topic's partitions.

        A member that is in already goes on: it may have been given its share before the last members came, and others
        wait for what it is to give up then.
        """
        self.member_id = self.member_id or str(uuid4())
        topic = ConsumerGroupHeartbeatRequest.TopicPartitions
        while True:
            assigned = self.assigned
            told = yield from self._ask(
                "ConsumerGroupHeartbeat",
                member_epoch=max(self.generation, 0),
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=[TOPIC] if assigned is None else None,
                topic_partitions=[topic(topic_id=each.topic_id, partitions=each.partitions) for each in assigned or ()],
            )
            check(told.error_code, "ConsumerGroupHeartbeat")
            self.generation = told.member_epoch
            if told.assignment is not None:
                self.assigned = told.assignment.topic_partitions
            elif assigned is not None:
                count = sum(len(each.partitions) for each in assigned)
                if PARTITIONS // members <= count <= -(-PARTITIONS // members):
                    return

    def _frame(self, api: str, **fields: Any) -> bytes:
        return _frame(api, group_id=self.group_id, member_id=self.member_id, **fields)

    def _ask(self, api: str, **fields: Any) -> Generator[bytes, bytes, Any]:
        return _response(api, (yield self._frame(api, **fields)))


class Driver:
    """Runs the scripts of many members at once."""

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None) -> None:
        self._address, self._tls = address, tls
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
        member.script = None
        return False
    return True


@cache
def _codec(name: str) -> tuple[bytes, Any, Any, Any]:
    """The head of a request of a flexible version, its class and its encoder; and the decoder of its answers."""
    api, version = Api.of(name), VERSIONS[name]
    head = struct.pack(">hhih", api.key, version, 1, 3) + b"kgo\0"
    return head, api.request, encoder(api.request.schema, version), decoder(api.response.schema, version)


def _frame(api: str, **fields: Any) -> bytes:
    head, request, encode, _ = _codec(api)
    data = b"".join((head, *encode(request(**fields))))
    return struct.pack(">i", len(data)) + data


def _response(api: str, answer: bytes) -> Any:
    decode = _codec(api)[3]
    response, _ = decode(answer, 5, PARTITIONS * 100)  # behind the correlation id and no tagged fields
    return response


def check(error: int, api: str) -> None:
    """Raise `DriverError` for the error of an answer."""
    if error:
        raise DriverError(f"{api} got error {error}")
