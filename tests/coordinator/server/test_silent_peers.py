"""Silent peers at every limit that connections share: honest ones are answered, and the silent ones are closed."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from client_messages import client_request, request_bytes
from kafka.protocol.producer import ProduceResponse
from own_log import own_log
from peers import Peer, answers, beat, fetch
from record_batches import batch
from topics import WAIT_S

from loadwise.coordinator import Certificates, Coordinator, Security, TlsFiles
from loadwise.coordinator.serving import server, sharing
from loadwise.coordinator.serving.connections import ServerLimits

LIMIT = 400_000


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers stand still as soon as others go on, and are looked at all the time."""
    monkeypatch.setattr(sharing, "STANDSTILL_S", 0.0)
    monkeypatch.setattr(server, "_CHECK_S", 0.01)


@contextlib.asynccontextmanager
async def running(security: Security | None = None, **limits: Any) -> AsyncIterator[Coordinator]:
    async with (
        Coordinator(topics={"t": 1}, security=security, limits=ServerLimits(**limits)) as coordinator,
        asyncio.timeout(WAIT_S),
    ):
        yield coordinator


def large_produce(size_bytes: int) -> bytes:
    data = {"index": 0, "records": batch([b"x" * size_bytes])}
    topic = {"name": "t", "partition_data": [data]}
    return request_bytes(client_request("Produce", 9, acks=1, timeout_ms=1, topic_data=[topic]), framed=True)


async def send(peer: Peer, data: bytes) -> None:
    peer.writer.write(data)
    await peer.writer.drain()


async def is_received(coordinator: Coordinator, peer: Peer, size_bytes: int) -> None:
    """Wait until the coordinator holds that many bytes of a peer, or has closed the connection."""
    port = peer.writer.get_extra_info("sockname")[1]
    connections = coordinator._embedded.server._connections

    def has_them() -> bool:
        found = (each for each in connections.all() if each.peer.name.endswith(f":{port}"))
        return any(each._splitter.buffered_bytes >= size_bytes for each in found)

    while not has_them() and not is_closed(peer):  # noqa: ASYNC110 (nothing tells of it)
        await asyncio.sleep(0)


def is_closed(peer: Peer) -> bool:
    return peer.reader.at_eof() or peer.reader.exception() is not None


async def count_closed(peers: list[Peer]) -> int:
    """Close all peers, and return how many the coordinator had closed before."""
    closed = 0
    for peer in peers:
        closed += is_closed(peer)
        peer.writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await peer.close()
    return closed


@pytest.mark.parametrize(
    ("number", "size_bytes"), [(3, 130_000), (30, 13_000), (130, 3_000)], ids=["large", "middling", "small"]
)
async def test_a_producer_is_answered_while_silent_peers_hold_unfinished_requests(
    number: int, size_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(max_buffered_bytes=LIMIT) as coordinator:
        silent = [await Peer.connect(coordinator) for _ in range(number)]
        for peer in silent:
            await send(peer, struct.pack(">i", LIMIT) + bytes(size_bytes - 4))
            await is_received(coordinator, peer, size_bytes)
        honest = await Peer.connect(coordinator)
        data = large_produce(200_000)
        for start in range(0, len(data), 10_000):  # on a slow line, so that all of it is held for long
            await send(honest, data[start : start + 10_000])
            await is_received(coordinator, honest, min(len(data) - 10_000, start + 10_000))
        answer = await honest.read(ProduceResponse, 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        lines = [record.message for record in own_log(caplog)]
        assert lines, "some of the silent ones are closed"
        assert all("requests without an answer take" in line for line in lines)
        assert all(f"this peer's are {size_bytes:,}" in line for line in lines)
        await honest.close()
        await count_closed(silent)


async def test_a_large_request_is_answered_while_slow_peers_send_smaller_ones(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sharing, "STANDSTILL_S", WAIT_S)  # all of them go on
    monkeypatch.setattr(sharing, "_LEAST_AGE_S", 0.0)
    async with running(max_buffered_bytes=LIMIT) as coordinator:
        slow = [await Peer.connect(coordinator) for _ in range(100)]
        for peer in slow:
            await send(peer, struct.pack(">i", 10_000) + bytes(3_000 - 4))
            await is_received(coordinator, peer, 3_000)
        honest = await Peer.connect(coordinator)
        data = large_produce(20_000)
        for part in range(1, 21):
            await send(honest, data[:10_000])
            await is_received(coordinator, honest, 10_000)
            for peer in slow:
                if not is_closed(peer):
                    await send(peer, bytes(50))
                    await is_received(coordinator, peer, 3_000 + 50 * part)
            await send(honest, data[10_000:])
            answer = await honest.read(ProduceResponse, 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
        assert own_log(caplog), "some of the slow ones are closed"
        await honest.close()
        await count_closed(slow)


async def test_requests_that_wait_for_their_answers_count_too(caplog: pytest.LogCaptureFixture) -> None:
    """Their bytes take memory, however long the peer lets them wait."""
    async with running(max_buffered_bytes=LIMIT) as coordinator:
        honest = await Peer.connect(coordinator)
        waiting = [await Peer.connect(coordinator) for _ in range(5)]
        for peer in waiting:
            request = fetch(max_wait_ms=600_000)
            request.rack_id = "r" * 30_000
            for _ in range(4):
                peer.send(request)
        while not own_log(caplog):
            assert await answers(honest)
        await honest.close()
        await count_closed(waiting)


async def test_a_user_logs_in_while_others_do_not(caplog: pytest.LogCaptureFixture) -> None:
    security = Security(users={"bob": "bob-secret"}, mechanisms=["PLAIN"])
    async with running(security, max_buffered_bytes=LIMIT) as coordinator:
        bob = await Peer.connect(coordinator)
        await log_in(bob)
        await send(bob, large_produce(250_000)[:-1])
        await is_received(coordinator, bob, 250_000)
        silent = [await Peer.connect(coordinator) for _ in range(40)]
        for peer in silent:
            await send(peer, struct.pack(">i", LIMIT) + bytes(9_996))
            await is_received(coordinator, peer, 10_000)
        again = await Peer.connect(coordinator)
        await log_in(again)
        assert await answers(again)
        await send(bob, large_produce(250_000)[-1:])
        assert (await bob.read(ProduceResponse, 9)).responses[0].partition_responses[0].error_code == 0
        lines = [record.message for record in own_log(caplog)]
        assert len(lines) >= 35
        assert all("requests before the login take" in line and "the limit is 50,000" in line for line in lines)
        await again.close()
        await bob.close()
        await count_closed(silent)


async def log_in(peer: Peer) -> None:
    assert (await peer.ask("SaslHandshake", 1, mechanism="PLAIN")).error_code == 0
    assert (await peer.ask("SaslAuthenticate", 2, auth_bytes=b"\0bob\0bob-secret")).error_code == 0


async def nothing(peer: Peer) -> None:
    """Do nothing, as a peer that never sends a byte."""


async def half(peer: Peer) -> None:
    await send(peer, struct.pack(">i", 100) + bytes(7))


async def asked(peer: Peer) -> None:
    assert await answers(peer)


@pytest.mark.parametrize("begins", [nothing, half, asked], ids=["silent", "half a request", "idle"])
async def test_a_crowd_does_not_keep_new_connections_out(
    begins: Callable[[Peer], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    async with running(max_connections=20) as coordinator:
        stays = await Peer.connect(coordinator)
        crowd = []
        for _ in range(40):
            assert await answers(stays)
            crowd.append(await Peer.connect(coordinator))
            await begins(crowd[-1])
            assert len(coordinator._embedded.server._connections.all()) <= 20
        new = await Peer.connect(coordinator)
        assert await answers(new)
        assert await answers(stays)
        assert all("the limit of 20 connections is reached" in record.message for record in own_log(caplog))
        for peer in (new, stays):
            await peer.close()
        assert await count_closed(crowd) >= 21


async def test_a_crowd_in_its_tls_handshake_does_not_keep_others_out(tmp_path: Any) -> None:
    certificates = Certificates(tmp_path)
    security = Security(protocol="SSL", tls=TlsFiles(keystore=certificates.broker))
    trusting = ssl.create_default_context(cafile=certificates.authority)
    async with running(security, max_connections=20) as coordinator:
        host, port = coordinator.bootstrap_servers.split(":")

        async def connect() -> Peer:
            return Peer(*await asyncio.open_connection(host, int(port), ssl=trusting, server_hostname=host))

        stays = await connect()
        assert await answers(stays)
        crowd = []
        for number in range(40):
            crowd.append(await Peer.connect(coordinator))
            if number % 2:
                await send(crowd[-1], b"\x16\x03\x01\x02\x00\x01")
            assert await answers(stays)
            assert len(coordinator._embedded.server._connections.all()) <= 11
        new = await connect()
        assert await answers(new)
        assert await answers(stays)
        for peer in (new, stays):
            peer.writer.transport.abort()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await peer.close()
        assert await count_closed(crowd) >= 29


async def test_an_unfinished_request_of_which_nothing_comes_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    async with running(max_silence_s=0.05) as coordinator:
        honest, busy, silent = [await Peer.connect(coordinator) for _ in range(3)]
        busy.send(fetch(max_wait_ms=600_000))
        await send(busy, struct.pack(">i", 100) + bytes(7))
        await send(silent, struct.pack(">i", 100) + bytes(7))
        assert await silent.is_hung_up_on()
        (line,) = own_log(caplog)
        assert "its request is incomplete, and nothing came for" in line.message
        assert await answers(honest), "silence between requests is no offence"
        # Nor is what comes behind a request that waits for its answer.
        assert [each for each in coordinator._embedded.server._connections.all() if each.waits_for is not None]
        for peer in (honest, busy, silent):
            await peer.close()


async def test_an_unfinished_request_that_goes_on_for_too_long_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    async with running(max_request_s=0.2) as coordinator:
        honest, dribbles = await Peer.connect(coordinator), await Peer.connect(coordinator)
        await send(dribbles, struct.pack(">i", 1_000_000))
        while not own_log(caplog):
            with contextlib.suppress(ConnectionError):
                await send(dribbles, b"\0")
            assert await answers(honest)
        assert "its request is incomplete after" in own_log(caplog)[0].message
        assert await dribbles.is_hung_up_on()
        for peer in (honest, dribbles):
            await peer.close()


async def test_one_who_reads_gets_answers_while_others_do_not_read(caplog: pytest.LogCaptureFixture) -> None:
    """Each of them leaves less than the honest one has to read at once."""
    async with running(max_unsent_bytes=2_000_000) as coordinator:
        coordinator.create_topic("large", 3000)
        deaf = [await Peer.connect(coordinator) for _ in range(40)]
        honest = await Peer.connect(coordinator)
        everything = client_request("Metadata", 4, topics=None)
        for peer in deaf:
            peer.writer.transport.pause_reading()
            for _ in range(100):  # each is answered with 75 kB; the system's own buffers take most of it
                peer.send(everything)
        while not own_log(caplog):
            assert await answers(honest)
        for _ in range(20):
            honest.send(everything)
        for _ in range(20):
            await honest.frame()
        honest.send(beat())
        await honest.frame()
        assert all("unread answers take" in record.message for record in own_log(caplog))
        await honest.close()
        await count_closed(deaf)
