"""The server: the order of answers, and peers that send what nobody should; seen from raw sockets."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from client_messages import client_request, request_bytes
from kafka.protocol.consumer import FetchResponse, HeartbeatResponse, JoinGroupResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse
from peers import Peer, answers, beat, fetch, join, produce
from record_batches import batch
from topics import WAIT_S

from loadwise.coordinator import BrokerSettings, Coordinator
from loadwise.coordinator.apis import metadata_3 as metadata
from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.serving import server
from loadwise.coordinator.serving.connection import host_in_java
from loadwise.coordinator.serving.connections import ServerLimits


@pytest.fixture
async def coordinator() -> AsyncIterator[Coordinator]:
    async with Coordinator(topics={"t": 1}, settings=BrokerSettings(max_request_bytes=100_000)) as running:
        yield running


# ---- answers ----


async def test_requests_that_come_in_one_piece_are_answered_in_their_order(
    coordinator: Coordinator, peer: Peer
) -> None:
    for number in range(5):
        peer.send(client_request("Metadata", 4) if number % 2 else beat(), number)
    for number in range(5):
        response, version = (MetadataResponse, 4) if number % 2 else (HeartbeatResponse, 4)
        assert (await peer.read(response, version)).header.correlation_id == number


async def test_a_request_behind_one_that_waits_waits_too(coordinator: Coordinator, peer: Peer, other: Peer) -> None:
    peer.send(fetch(max_wait_ms=60_000), 1)
    peer.send(beat(), 2)
    assert await answers(other)
    other.send(produce(acks=0))
    assert await answers(other), "acks=0 gets no answer, and the next request gets its own"
    found = await peer.read(FetchResponse, 11)
    assert found.header.correlation_id == 1
    assert found.responses[0].partitions[0].records
    assert (await peer.read(HeartbeatResponse, 4)).header.correlation_id == 2


async def test_a_fetch_waits_for_enough_bytes_and_no_longer_than_it_wants(
    coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    size = len(batch([b"x"]))
    peer.send(fetch(max_wait_ms=60_000, min_bytes=2 * size), 1)
    other.send(produce(acks=0))
    other.send(produce(acks=0))
    found = await peer.read(FetchResponse, 11)
    assert len(found.responses[0].partitions[0].records) == 2 * size
    found = await peer.exchange(fetch(max_wait_ms=1, offset=2))
    assert not found.responses[0].partitions[0].records


async def test_a_version_of_api_versions_from_the_future_is_answered_in_v0(
    coordinator: Coordinator, peer: Peer
) -> None:
    peer.writer.write(struct.pack(">ihhih", 10, 18, 99, 1234, -1))
    reply = await peer.read(ApiVersionsResponse, 0)
    assert (reply.header.correlation_id, reply.error_code) == (1234, 35)
    assert (18, 0) in {(row.api_key, row.min_version) for row in reply.api_keys}
    answer = await peer.ask("ApiVersions", 4, client_software_name="a", client_software_version="1")
    assert answer.error_code == 0, "the same connection goes on"


@pytest.mark.parametrize("turns", range(5))
async def test_whoever_connects_while_it_stops_is_hung_up_on(turns: int) -> None:
    """At any turn of asyncio's loop: accepted by the system, by asyncio, or half opened. None of these stays open.

    asyncio drops what it has accepted and not yet opened when its listener closes, and does not close it.
    """
    coordinator = Coordinator()
    await coordinator.start()
    host, port = coordinator.bootstrap_servers.split(":")
    # These connect without a turn of the loop: the system accepts them.
    peers = [socket.create_connection((host, int(port)), timeout=WAIT_S) for _ in range(3)]
    for _ in range(turns):
        await asyncio.sleep(0)
    await coordinator.stop()
    for peer in peers:
        with peer, suppress(ConnectionResetError):  # what asyncio had not accepted
            assert peer.recv(1) == b""


@pytest.mark.parametrize("turns", range(8))
async def test_nothing_happens_by_time_after_it_has_stopped(turns: int) -> None:
    """Whenever a request comes that makes a session, which would end some time later."""
    coordinator = Coordinator()
    await coordinator.start()
    server = coordinator._embedded.server
    peer = await Peer.connect(coordinator)
    loop = asyncio.get_running_loop()

    def ask(turns_left: int) -> None:
        if turns_left:
            loop.call_soon(ask, turns_left - 1)
        else:
            peer.writer.write(_framed(join("g")))

    ask(turns)
    await coordinator.stop()
    assert server._alarm._timer is None
    await peer.close()


@pytest.mark.parametrize(
    ("host", "in_java"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::ff00:42:8329", "2001:db8:0:0:0:ff00:42:8329"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("?", "?"),
    ],
)
def test_addresses_are_written_as_in_java_so_that_acls_of_hosts_mean_the_same(host: str, in_java: str) -> None:
    """By InetAddress.getByName(host).getHostAddress()."""
    assert host_in_java(host) == in_java


# ---- peers that send what nobody should ----


def _framed(request: Any) -> bytes:
    return request_bytes(request, 1, None, framed=True)


BAD_BYTES = {
    "a negative size": struct.pack(">i", -5),
    "a size above the limit": struct.pack(">i", 100_001),
    "an unknown API": struct.pack(">ihhih", 10, 999, 0, 1, -1),
    "an unknown version": struct.pack(">ihhih", 10, 12, 77, 1, -1),
    "less than a header": struct.pack(">ih", 2, 12),
    "a body that ends early": struct.pack(">ihhihh", 12, 12, 0, 1, -1, 50),
    "a negative count": struct.pack(">ihhihi", 14, 3, 0, 1, -1, -5),
    "a group id of 40,000 bytes": _framed(client_request("Heartbeat", 4, group_id="x" * 40_000, member_id="m")),
    "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(512),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("bad", BAD_BYTES.values(), ids=BAD_BYTES.keys())
async def test_bad_bytes_close_their_connection_with_one_line_and_nobody_else_notices(
    coordinator: Coordinator, bad: bytes, caplog: pytest.LogCaptureFixture, peer: Peer, other: Peer
) -> None:
    assert await answers(other)
    peer.writer.write(bad)
    assert await peer.is_hung_up_on()
    assert await answers(other)
    (line,) = [record for record in caplog.records if record.name == "loadwise.coordinator"]
    assert (line.levelno, "closed: " in line.message) == (logging.WARNING, True)
    assert f"{peer.writer.get_extra_info('sockname')[1]}" in line.message


async def test_what_came_before_the_bad_bytes_is_answered(coordinator: Coordinator, peer: Peer) -> None:
    peer.send(beat())
    peer.writer.write(struct.pack(">i", -1))
    assert (await peer.read(HeartbeatResponse, 4)).error_code == 25
    assert await peer.is_hung_up_on()


async def test_a_failure_of_ours_closes_one_connection(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture, peer: Peer, other: Peer
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    coordinator._embedded.router.services[12].handle = fail
    peer.send(beat())
    assert await peer.is_hung_up_on()
    assert (await other.ask("Metadata", 4)).brokers
    assert "ZeroDivisionError" in caplog.text


async def test_an_answer_to_a_connection_that_is_gone_is_dropped() -> None:
    async with Coordinator(topics={"t": 1}) as coordinator:
        stays, waits = await Peer.connect(coordinator), await Peer.connect(coordinator)
        first = await stays.exchange(join("g"))
        group = coordinator.cluster.groups.get("g")
        assert group is not None
        waits.send(join("g"))  # answered once the first has joined again
        while len(group.members) < 2:
            assert await answers(stays)
        await waits.close()
        joined = await stays.exchange(join("g", first.member_id))
        assert (joined.error_code, joined.generation_id) == (0, 2)
        assert len(group.members) == 2, "only its session ends a member"
        await stays.close()


async def test_a_fetch_of_a_connection_that_is_gone_is_forgotten(
    coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    peer.send(fetch(max_wait_ms=600_000))
    while coordinator.cluster.fetches.next_deadline_ms is None:
        assert await answers(other)
    await peer.close()
    while coordinator.cluster.fetches.next_deadline_ms is not None:
        assert await answers(other)


async def test_there_are_no_more_connections_than_allowed(caplog: pytest.LogCaptureFixture) -> None:
    async with Coordinator(limits=ServerLimits(max_connections=1)) as coordinator:
        first = await Peer.connect(coordinator)
        assert await answers(first)
        second = await Peer.connect(coordinator)
        assert await first.is_hung_up_on()
        assert await answers(second)
        await first.close()
        await second.close()
    assert "the limit of 1 connections is reached" in caplog.text


async def test_a_peer_that_does_not_read_is_not_answered_on_and_on(
    coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    coordinator.create_topic("large", 2000)
    handled = 0

    def handle(call: Call, cluster: Cluster) -> object:
        nonlocal handled
        handled += 1
        return metadata.handle(call, cluster)

    coordinator._embedded.router.services[3].handle = handle
    for number in range(2000):  # each is answered with 50 kB
        peer.send(client_request("Metadata", 4, topics=None), number)
    for _ in range(20):
        assert await answers(other)
    assert 0 < handled < 1000, "what does not fit into the sockets' buffers waits unanswered"
    for number in range(300):
        assert (await peer.frame()).startswith(struct.pack(">i", number)), "its correlation id"
    peer.writer.transport.abort()


# ---- peers that hold on to what they were given ----


async def test_a_silent_connection_is_closed_unless_it_waits_for_an_answer(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_CHECK_S", 0.01)
    async with Coordinator(topics={"t": 1}) as coordinator:
        waits, silent = await Peer.connect(coordinator), await Peer.connect(coordinator)
        waits.send(fetch(max_wait_ms=600_000))
        while coordinator.cluster.fetches.next_deadline_ms is None:
            assert await answers(silent)
        # Only now, because a slow machine may be silent on either connection until here.
        coordinator.cluster.settings = BrokerSettings(connections_max_idle_ms=50)
        assert await silent.is_hung_up_on()
        coordinator.cluster.settings = BrokerSettings()
        other = await Peer.connect(coordinator)
        other.send(produce(acks=0))
        assert (await waits.read(FetchResponse, 11)).error_code == 0
        for peer in (waits, silent, other):
            await peer.close()
    assert "idle for" in caplog.text
    assert "connections.max.idle.ms" in caplog.text


async def test_answers_that_are_not_read_have_a_limit_together(caplog: pytest.LogCaptureFixture) -> None:
    # Below the 64 KiB from which on asyncio takes no more to send: what the system's own buffers take differs.
    limits = ServerLimits(max_unsent_bytes=60_000)
    async with Coordinator(topics={"large": 2000}, limits=limits) as coordinator:
        greedy, other = await Peer.connect(coordinator), await Peer.connect(coordinator)
        greedy.writer.transport.pause_reading()
        for number in range(2000):  # each is answered with 50 kB
            greedy.send(client_request("Metadata", 4, topics=None), number)
        while "unread answers take" not in caplog.text:
            assert await answers(other)
        (line,) = [record.message for record in caplog.records if "closed:" in record.message]
        assert f"{greedy.writer.get_extra_info('sockname')[1]}" in line
        greedy.writer.transport.abort()
        await other.close()


async def test_an_answer_that_cannot_be_written_is_an_error_for_its_client_alone(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    """A member id is made of the client id; in JoinGroup v3 there is no room for 36 more characters. As Kafka."""
    stays, long = await Peer.connect(coordinator), await Peer.connect(coordinator)
    first = await stays.exchange(join("g"))
    request = join("g")
    long.writer.write(request_bytes(request, 7, "x" * 32_760, framed=True))
    group = coordinator.cluster.groups.get("g")
    assert group is not None
    while len(group.members) < 2:
        assert await answers(stays)
    joined = await stays.exchange(join("g", first.member_id))
    # The leader's answer names the other member, whose id does not fit.
    assert joined.error_code in (0, -1)
    assert (await long.read(JoinGroupResponse, 3)).error_code == -1
    assert "cannot be encoded" in caplog.text
    assert await answers(stays)
    await stays.close()
    await long.close()
