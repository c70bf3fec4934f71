"""Peers that mean harm, against the coordinator as a program: it stays small, others notice nothing, one line each.

What single requests are answered is in ``test_server.py``, ``test_every_version.py`` and ``tests/protocol``.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import resource
import socket
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from client_messages import client_request, request_bytes
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import HeartbeatResponse
from kafka.protocol.metadata import MetadataResponse
from own_log import own_log
from peers import Peer, answers, beat, join, produce
from topics import WAIT_S

from loadwise.coordinator import BrokerSettings, Coordinator
from loadwise.coordinator.serving import sharing
from loadwise.coordinator.serving.connections import ServerLimits

MIB = 1024 * 1024
CONNECTIONS = 1_000
FILES = 128
BACKLOG = 50
"""So many connections wait to be accepted. A further one is refused silently, and tried again a second later."""


class Program:
    """``loadwise coordinator`` as a process: its address, its memory, its log."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        assert process.stdout is not None
        self.pid = process.pid
        self.host, _, port = process.stdout.readline().split()[-1].rpartition(":")
        self.port = int(port)
        self._log = log
        self._forgotten_lines = 0

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=WAIT_S)

    def is_well(self) -> bool:
        """Whether another client is answered as ever."""
        with self.connect() as peer:
            request = client_request("Metadata", 9, topics=None)
            peer.sendall(request_bytes(request, 7, "good", framed=True))
            data = b""
            while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
                data += peer.recv(65536)
            return [topic.name for topic in MetadataResponse.decode(data[4:], version=9, header=True).topics] == ["t"]

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    def log_lines(self) -> list[str]:
        """What it has logged since `forget_log`."""
        return self._log.read_text().splitlines()[self._forgotten_lines :]

    def forget_log(self) -> None:
        self._forgotten_lines = len(self._log.read_text().splitlines())


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The program, with room for a thousand connections, which the usual soft limit of open files does not give."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("how much memory a process takes is read from Linux's /proc")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 3 * CONNECTIONS
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"{hard} files may be open at once; this takes {wanted}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    log = tmp_path_factory.mktemp("hostile") / "log"
    command = [sys.executable, "-m", "loadwise", "coordinator", "--topic", "t:4", "--no-auto-create-topics"]
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            yield Program(process, log)
        finally:
            process.kill()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def program(running: Program) -> Program:
    """The same program for every test; what the one before has done to it is forgotten."""
    assert running.is_well()
    running.forget_log()
    return running


def wait_until_hung_up_on(peer: socket.socket) -> None:
    with contextlib.suppress(ConnectionResetError):
        while peer.recv(65536):
            pass


@pytest.mark.parametrize(
    "first_bytes", [b"", struct.pack(">i", 16 * MIB), struct.pack(">ihhi", 15 * MIB, 12, 4, 1)],
    ids=["nothing", "a claimed size", "the beginning of a request"],
)  # fmt: skip
def test_a_thousand_idle_connections_take_no_memory(program: Program, first_bytes: bytes) -> None:
    before = program.resident_bytes()
    with contextlib.ExitStack() as connections:
        for number in range(CONNECTIONS):
            connections.enter_context(program.connect()).sendall(first_bytes)
            if number % BACKLOG == 0:
                assert program.is_well()
        assert program.is_well()
        assert program.resident_bytes() - before < 20 * MIB
    assert program.is_well()
    assert program.log_lines() == [], "who goes in the middle of a request has done nothing wrong"


def test_churn_leaves_nothing_behind(program: Program) -> None:
    def churn(times: int) -> None:
        request = beat()
        data = request_bytes(request, 1, "churn", framed=True)
        for number in range(times):
            with program.connect() as peer:
                peer.sendall(data[: number % (len(data) + 1)])
                if number % 3 == 0:  # goes with a reset, not in order
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if number % BACKLOG == 0:
                assert program.is_well()

    churn(500)
    assert program.is_well()
    before = program.resident_bytes()
    churn(1_000)
    assert program.is_well()
    assert program.resident_bytes() - before < 2 * MIB
    assert program.log_lines() == []


def test_random_bytes_are_refused_with_one_line_each(program: Program) -> None:
    chance = random.Random(1)
    assert program.is_well()
    before = program.resident_bytes()
    for _ in range(300):
        with program.connect() as peer:
            frame = struct.pack(">hh", chance.randrange(70), chance.randrange(14)) + chance.randbytes(200)
            # The size after it is no size either, so that it is hung up on at the latest then.
            with contextlib.suppress(ConnectionError):
                peer.sendall(struct.pack(">i", len(frame)) + frame + b"\xff" * 8)
            wait_until_hung_up_on(peer)
    assert program.is_well()
    lines = program.log_lines()
    assert len(lines) == 300
    assert all(": closed: " in line for line in lines), "a sentence, not a traceback"
    assert program.resident_bytes() - before < 30 * MIB


def test_huge_counts_take_no_memory(program: Program) -> None:
    """Every four bytes of requests with arrays claim to be two billion."""
    assert program.is_well()
    before = program.resident_bytes()
    request = client_request("Metadata", 4, topics=[{"name": "t" * 50}])
    frame = request_bytes(request, 1, "huge")
    for position in range(8, len(frame) - 4):
        damaged = frame[:position] + struct.pack(">i", 2**31 - 1) + frame[position + 4 :]
        with program.connect() as peer, contextlib.suppress(ConnectionError):
            peer.sendall(struct.pack(">i", len(damaged)) + damaged + b"\xff" * 8)
            wait_until_hung_up_on(peer)
    assert program.is_well()
    assert program.resident_bytes() - before < 20 * MIB


def test_a_crowd_that_takes_all_file_descriptors_keeps_nobody_out(tmp_path: Path) -> None:
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({FILES}, {FILES}))"
    script = f"{limited}; from loadwise.cli import main; main(['coordinator', '--topic', 't:4'])"
    log = tmp_path / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        contextlib.ExitStack() as crowd,
    ):
        try:
            program = Program(process, log)
            for number in range(2 * FILES):
                crowd.enter_context(program.connect())
                if number % 10 == 0:
                    assert program.is_well()
            assert program.is_well()
            lines = program.log_lines()
            assert len(lines) > FILES // 2
            assert all("short of file descriptors (ulimit -n)" in line for line in lines)
        finally:
            process.kill()


# ---- in this process ----


@pytest.fixture
async def coordinator() -> AsyncIterator[Coordinator]:
    settings, limits = BrokerSettings(max_request_bytes=100_000), ServerLimits(max_buffered_bytes=250_000)
    async with Coordinator(topics={"t": 1}, settings=settings, limits=limits) as running:
        yield running


async def test_a_slow_sender_is_answered_in_the_end_and_keeps_nobody_waiting(coordinator: Coordinator) -> None:
    slow, other = await Peer.connect(coordinator), await Peer.connect(coordinator)
    request = beat()
    for byte in request_bytes(request, 7, "slow", framed=True):
        slow.writer.write(bytes([byte]))
        await slow.writer.drain()
        assert await answers(other)
    assert (await slow.read(HeartbeatResponse, 4)).error_code == 25
    await slow.close()
    await other.close()


async def test_unfinished_requests_have_a_limit_together(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "_LEAST_AGE_S", 1e9)  # all seem to have begun at the same time
    peers = [await Peer.connect(coordinator) for _ in range(4)]
    for number, peer in enumerate(peers[:3]):
        peer.writer.write(struct.pack(">i", 99_000) + bytes(80_000 + number))
        await peer.writer.drain()
        assert await answers(peers[3]), number
    peers[3].writer.write(struct.pack(">i", 20_000) + bytes(10_000))
    assert await peers[2].is_hung_up_on(), "it has the most"
    (line,) = [record.message for record in own_log(caplog)]
    assert "the limit is 250,000, and this peer's are 80,006" in line
    peers[3].writer.write(bytes(10_000))
    # The bytes were no request: it is hung up on for that, not for their number.
    assert await peers[3].is_hung_up_on()
    assert "the limit" not in own_log(caplog)[-1].message
    again = await Peer.connect(coordinator)
    again.writer.write(struct.pack(">i", 99_000) + bytes(80_000))
    await again.writer.drain()
    assert len(own_log(caplog)) == 2, "what is gone does not count any more"
    for peer in (*peers, again):
        await peer.close()


@pytest.mark.parametrize(
    "subscription",
    [b"", b"\xff" * 9, struct.pack(">hi", 0, -7), struct.pack(">hi", 0, 2**31 - 1), struct.pack(">hihi", 3, 1, 5, 9)],
    ids=["none", "random bytes", "a negative count", "a huge count", "the beginning of one"],
)
async def test_a_subscription_that_does_not_parse_is_only_its_readers_concern(
    coordinator: Coordinator, subscription: bytes, peer: Peer
) -> None:
    request = join("g")
    request.protocols[0].metadata = subscription
    joined = await peer.exchange(request)
    assert (joined.error_code, joined.members[0].metadata) == (0, subscription)
    described = await peer.ask("DescribeGroups", 4, groups=["g"])
    assert (described.groups[0].error_code, len(described.groups[0].members)) == (0, 1)


async def test_a_produce_without_records_is_answered(coordinator: Coordinator, peer: Peer) -> None:
    request = produce()
    request.topic_data[0].partition_data[0].records = None
    answer = await peer.exchange(request)
    assert answer.responses[0].partition_responses[0].error_code == 87


@given(data=st.data())
def test_whatever_comes_other_peers_notice_nothing(data: st.DataObject) -> None:
    pieces = data.draw(
        st.lists(
            st.one_of(
                st.binary(max_size=40),
                st.builds(
                    lambda key, version, body: struct.pack(">ihh", 4 + len(body), key, version) + body,
                    st.integers(0, 70), st.integers(0, 14), st.binary(max_size=60),
                ),
                st.builds(lambda size: struct.pack(">i", size), st.integers(-(2**31), 2**31 - 1)),
            ),
            max_size=6,
        )
    )  # fmt: skip

    async def attack() -> None:
        async with Coordinator(topics={"t": 1}) as running:
            good, bad = await Peer.connect(running), await Peer.connect(running)
            for piece in pieces:
                with contextlib.suppress(ConnectionError):
                    bad.writer.write(piece)
                    await bad.writer.drain()
                assert await answers(good)
            bad.writer.transport.abort()
            assert await answers(good)
            await good.close()

    asyncio.run(attack())
