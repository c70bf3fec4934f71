"""A heartbeat that comes again, byte for byte: its sender hears what is so now, not what it heard last."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from client_messages import client_request, request_bytes
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import HeartbeatResponse
from peers import Peer, join

from loadwise.coordinator import Coordinator
from loadwise.coordinator.apis import heartbeat_12 as heartbeat
from loadwise.coordinator.authorization.acls import Acl
from loadwise.coordinator.authorization.feature import ClusterAcls
from loadwise.coordinator.authorization.options import Authorization
from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.routing.repeated_heartbeats import RepeatedHeartbeat
from loadwise.coordinator.security.options import Security
from loadwise.protocol import kafka_messages
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api, decode_request, served

SESSION_MS = 60_000
MAY_READ = Acl.of("User:ANONYMOUS", "READ", "GROUP", "g")


class Member:
    """The only member of the group g, whose coordinator's clock stands still."""

    def __init__(self, coordinator: Coordinator, peer: Peer) -> None:
        self.coordinator = coordinator
        self.peer = peer
        self.id = ""
        self.handled = 0
        """How many of its heartbeats were handled as any request is."""

    async def join(self) -> None:
        def handle(call: Call, cluster: Cluster) -> Any:
            self.handled += 1
            return heartbeat.handle(call, cluster)

        self.coordinator._embedded.router.services[12].handle = handle
        self.coordinator.clock.freeze()
        await self.join_again(generation=1)

    async def join_again(self, generation: int) -> None:
        joining = join("g", self.id, session_timeout_ms=SESSION_MS)
        self.id = (await self.peer.exchange(joining)).member_id
        row = {"member_id": self.id, "assignment": b"a"}
        sync = client_request(
            "SyncGroup", 3, group_id="g", generation_id=generation, member_id=self.id, assignments=[row]
        )
        assert (await self.peer.exchange(sync)).error_code == 0

    def frame(
        self, correlation_id: int, version: int = 4, generation: int = 1, instance_id: str | None = None
    ) -> bytes:
        request = client_request(
            "Heartbeat",
            version,
            group_id="g",
            generation_id=generation,
            member_id=self.id,
            group_instance_id=instance_id,
        )
        return request_bytes(request, correlation_id, "peer", framed=True)

    async def beat(
        self, correlation_id: int = 7, version: int = 4, generation: int = 1, instance_id: str | None = None
    ) -> ErrorCode:
        self.peer.writer.write(self.frame(correlation_id, version, generation, instance_id))
        reply = await self.peer.read(HeartbeatResponse, version)
        assert (reply.header.correlation_id, reply.throttle_time_ms) == (correlation_id, 0)
        return ErrorCode(reply.error_code)


@pytest.fixture(params=["in memory", "in a directory"])
async def member(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Member]:
    data_dir = tmp_path if request.param == "in a directory" else None
    async with Coordinator(brokers=2, data_dir=data_dir) as coordinator:
        coordinator.move_coordinator("g", to=coordinator.cluster.brokers.nodes[0].id)
        peer = await Peer.connect_to(coordinator.bootstrap_servers.partition(",")[0])
        made = Member(coordinator, peer)
        await made.join()
        yield made
        await peer.close()


async def test_it_is_answered_under_its_own_correlation_id_and_not_handled_again(member: Member) -> None:
    for correlation_id in (1, -(2**31), 2**31 - 1, 0):
        assert await member.beat(correlation_id) is ErrorCode.NONE
    assert member.handled == 1


async def test_it_is_answered_in_its_version(member: Member) -> None:
    for version in (4, 1, 3, 2):
        for _ in range(2):
            assert await member.beat(version=version) is ErrorCode.NONE
    assert member.handled == 4


async def test_it_is_answered_with_every_field_that_a_handled_one_is(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A field that Kafka's next version adds must not be missing in repeated answers alone."""
    throttled = kafka_messages.HeartbeatResponse(error_code=0, throttle_time_ms=1234)
    monkeypatch.setattr(heartbeat, "response", lambda _: throttled)
    for number, version in enumerate((0, 1, 2, 3, 4), start=1):
        answers = []
        for _ in range(2):
            member.peer.writer.write(member.frame(7, version))
            answers.append(await member.peer.frame())
        assert answers[0] == answers[1]
        assert (struct.pack(">i", 1234) in answers[0]) == (version > 0)
        assert member.handled == number


async def test_it_keeps_its_member_alive(member: Member) -> None:
    for _ in range(10):
        member.coordinator.clock.step(SESSION_MS - 1)
        assert await member.beat() is ErrorCode.NONE
    assert member.handled == 1
    member.coordinator.clock.step(SESSION_MS)
    assert await member.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def _rebalance(coordinator: Coordinator) -> None:
    coordinator.groups.rebalance("g")


def _expire(coordinator: Coordinator) -> None:
    coordinator.groups.expire_session("g", next(iter(coordinator.cluster.groups.all()["g"].members)))


def _move(coordinator: Coordinator) -> None:
    coordinator.move_coordinator("g")


def _fail(coordinator: Coordinator) -> None:
    coordinator.faults.answer("Heartbeat", "FENCED_INSTANCE_ID")


@pytest.mark.parametrize(
    ("happens", "told"),
    [
        (_rebalance, ErrorCode.REBALANCE_IN_PROGRESS),
        (_expire, ErrorCode.UNKNOWN_MEMBER_ID),
        (_move, ErrorCode.NOT_COORDINATOR),
        (_fail, ErrorCode.FENCED_INSTANCE_ID),
    ],
)
async def test_it_tells_what_has_happened_since(
    member: Member, happens: Callable[[Coordinator], None], told: ErrorCode
) -> None:
    assert await member.beat() is ErrorCode.NONE
    happens(member.coordinator)
    assert await member.beat() is told


async def test_it_tells_that_the_generation_is_over(member: Member) -> None:
    assert await member.beat() is ErrorCode.NONE
    await member.join_again(generation=2)
    for _ in range(2):
        assert await member.beat() is ErrorCode.ILLEGAL_GENERATION
    for _ in range(2):
        assert await member.beat(generation=2) is ErrorCode.NONE


async def test_what_was_wrong_is_wrong_again(member: Member) -> None:
    for _ in range(2):
        assert await member.beat(instance_id="nobody's") is ErrorCode.UNKNOWN_MEMBER_ID


HEARTBEATS = served([Api.of("Heartbeat")])


@given(st.data())
def test_only_the_correlation_id_may_differ(data: st.DataObject) -> None:
    request = client_request("Heartbeat", 4, group_id="g", generation_id=1, member_id="m", group_instance_id="i")
    frame = request_bytes(request, 7, "peer")
    kept = RepeatedHeartbeat.of(frame, decode_request(frame, HEARTBEATS))
    assert kept is not None
    assert kept.is_repeated_by(frame)
    place, byte = data.draw(st.integers(0, len(frame) - 1)), data.draw(st.integers(0, 255))
    changed = frame[:place] + bytes([byte]) + frame[place + 1 :]
    assert kept.is_repeated_by(changed) == (place in range(4, 8) or changed == frame)
    assert not kept.is_repeated_by(frame + data.draw(st.binary(min_size=1)))
    assert not kept.is_repeated_by(frame[: data.draw(st.integers(0, len(frame) - 1))])


def test_bytes_behind_a_heartbeat_are_not_kept() -> None:
    request = client_request("Heartbeat", 4, group_id="g", generation_id=1, member_id="m")
    frame = request_bytes(request, 7, "peer") + bytes(10_000_000)
    assert RepeatedHeartbeat.of(frame, decode_request(frame, HEARTBEATS)) is None


async def test_it_waits_like_any_request_for_what_a_directory_has_not_kept_yet(tmp_path: Path) -> None:
    async with Coordinator(data_dir=tmp_path) as coordinator:
        peer = await Peer.connect(coordinator)
        member = Member(coordinator, peer)
        await member.join()
        assert await member.beat() is ErrorCode.NONE
        coordinator.cluster.topics.create("t", 1)  # kept at the end of this turn of the loop
        (connection,) = coordinator._embedded.server._connections.all()
        connection.data_received(member.frame(7))
        assert member.handled == 2
        assert not connection._unsent.answers
        assert (await peer.read(HeartbeatResponse, 4)).error_code == 0
        await peer.close()


async def test_whoever_may_not_any_more_is_told_at_the_next_one() -> None:
    security = Security(protocol="PLAINTEXT", authorization=Authorization(acls=[MAY_READ]))
    async with Coordinator(security=security) as coordinator:
        peer = await Peer.connect(coordinator)
        member = Member(coordinator, peer)
        await member.join()
        for _ in range(3):
            assert await member.beat() is ErrorCode.NONE
        assert ClusterAcls.of(coordinator.cluster).authorizer is not None
        ClusterAcls.of(coordinator.cluster).authorizer.remove(MAY_READ)
        assert await member.beat() is ErrorCode.GROUP_AUTHORIZATION_FAILED
        await peer.close()
