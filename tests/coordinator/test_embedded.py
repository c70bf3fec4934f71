"""`Coordinator` as a part of somebody's program."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading

import pytest
from client_messages import request_bytes
from kafka import KafkaConsumer
from kafka.protocol.consumer import FetchResponse
from kafka_process import reserved_port
from peers import Peer, answers, beat, fetch, join, produce
from topics import WAIT_S

from loadwise.coordinator import (
    BadClusterError,
    BadTopicError,
    Coordinator,
    HttpOptions,
    NotLoopbackError,
    NotRunningError,
    ThreadedCoordinator,
)
from loadwise.installation import pip_install


async def test_it_listens_while_it_is_entered() -> None:
    with reserved_port() as port:
        coordinator = Coordinator(topics={"flights": 36}, port=port)
        with pytest.raises(NotRunningError, match="async with"):
            _ = coordinator.bootstrap_servers
        assert repr(coordinator) == "<Coordinator that does not run>"
        async with coordinator:
            assert coordinator.bootstrap_servers == f"127.0.0.1:{port}"
            assert repr(coordinator) == f"<Coordinator at 127.0.0.1:{port}>"
            socket.create_connection(("127.0.0.1", port)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
    with pytest.raises(NotRunningError):
        _ = coordinator.bootstrap_servers


async def test_it_can_be_started_again_and_keeps_what_it_had() -> None:
    coordinator = Coordinator(topics={"t": 2})
    for _ in range(2):
        async with coordinator:
            topic = coordinator.cluster.topics.get("t")
            assert topic is not None


def test_on_a_thread_it_leaves_no_thread_behind() -> None:
    before = set(threading.enumerate())
    with Coordinator(topics={"flights": 36}).in_thread() as coordinator:
        assert len(set(threading.enumerate()) - before) == 1
        coordinator.create_topic("more", 2)
        with pytest.raises(BadTopicError, match="already exists"):
            coordinator.create_topic("more", 2)
        with KafkaConsumer(bootstrap_servers=coordinator.bootstrap_servers) as client:
            assert client.partitions_for_topic("flights") == set(range(36))
            assert client.partitions_for_topic("more") == {0, 1}
    assert set(threading.enumerate()) <= before
    with pytest.raises(NotRunningError):
        coordinator.create_topic("late")


def test_with_names_in_thread() -> None:
    with pytest.raises(TypeError, match=r"use `with Coordinator\(...\).in_thread\(\)`"), Coordinator():  # type: ignore[attr-defined]
        pass


@pytest.mark.parametrize("coordinator", [Coordinator(), Coordinator().in_thread()])
def test_before_it_runs_both_ways_to_start_it_are_named(coordinator: Coordinator | ThreadedCoordinator) -> None:
    with pytest.raises(NotRunningError, match="use `with` or `async with` first"):
        _ = coordinator.bootstrap_servers


def test_an_address_that_is_taken_is_an_error_where_it_is_started(coordinator: ThreadedCoordinator) -> None:
    port = int(coordinator.bootstrap_servers.rpartition(":")[2])
    with pytest.raises(OSError, match="in use"):
        Coordinator(port=port).in_thread().start()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_others_reach_it_only_if_that_is_said_twice(host: str) -> None:
    with pytest.raises(NotLoopbackError, match="allow_remote=True"):
        Coordinator(host=host)
    Coordinator(host=host, allow_remote=True, advertised_host="broker.example")
    Coordinator(host="localhost")
    Coordinator(host="::1")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_clients_are_not_told_to_connect_to_every_address(host: str) -> None:
    with pytest.raises(BadClusterError, match="advertised_host"):
        Coordinator(host=host, allow_remote=True)


async def test_clients_are_told_another_address_if_there_is_one() -> None:
    async with Coordinator(advertised_host="broker.example", advertised_port=9092) as coordinator:
        assert coordinator.bootstrap_servers == "broker.example:9092"
    async with Coordinator(advertised_host="::1", advertised_port=9092) as coordinator:
        assert coordinator.bootstrap_servers == "[::1]:9092"


@pytest.mark.parametrize(
    ("name", "partitions", "complaint"), [("a/b", 1, "Topic name is invalid"), ("t", 0, "at least 1")]
)
def test_a_topic_that_cannot_be_is_refused(name: str, partitions: int, complaint: str) -> None:
    with pytest.raises(BadTopicError, match=complaint):
        Coordinator(topics={name: partitions})


def test_topics_without_numbers_of_partitions_are_refused() -> None:
    with pytest.raises(BadTopicError, match=r"topics is \['t'\]; it must map names to partition counts"):
        Coordinator(topics=["t"])  # type: ignore[arg-type]
    with pytest.raises(BadTopicError, match="the topic 't' has '3' partitions; it must be a whole number"):
        Coordinator(topics={"t": "3"})  # type: ignore[dict-item]


def test_it_needs_no_kafka_python() -> None:
    code = """
import asyncio, sys
sys.modules["kafka"] = None
from loadwise.coordinator import Coordinator
async def main():
    async with Coordinator(topics={"t": 1}): pass
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_its_libraries_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['crc32c'] = None; import loadwise.coordinator"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert pip_install("coordinator") in result.stderr.splitlines()[-1]


# ---- stopped and started again ----


async def test_who_waited_before_a_restart_gets_no_answer_of_it() -> None:
    """A join that waits stays with its member; the wait must not have the name of anybody's wait after the restart."""
    coordinator = Coordinator(topics={"t": 1})
    async with coordinator:
        stays, waits = await Peer.connect(coordinator), await Peer.connect(coordinator)
        first = await stays.exchange(join("g"))
        waits.send(join("g"))
        group = coordinator.cluster.groups.get("g")
        assert group is not None
        while len(group.members) < 2:
            assert await answers(stays)
    async with coordinator:
        fetchers = [await Peer.connect(coordinator) for _ in range(8)]
        for peer in fetchers:
            peer.send(fetch(max_wait_ms=60_000))
        again = await Peer.connect(coordinator)
        while len(coordinator.cluster.fetches) < len(fetchers):
            assert await answers(again)
        assert (await again.exchange(join("g", first.member_id))).generation_id == 2
        assert (await again.exchange(produce())).responses
        for peer in fetchers:
            assert (await peer.read(FetchResponse, 11)).responses[0].partitions[0].records
        for peer in (stays, waits, again, *fetchers):
            await peer.close()


def test_on_a_thread_it_listens_when_it_is_started_again() -> None:
    threaded = Coordinator(http=HttpOptions()).in_thread()
    for _ in range(5):
        with threaded:
            host, port = threaded.bootstrap_servers.split(":")
            socket.create_connection((host, int(port))).close()
            host, port = threaded.http_url.removeprefix("http://").split(":")
            with socket.create_connection((host, int(port)), timeout=WAIT_S) as peer, peer.makefile("rb") as answer:
                peer.sendall(b"GET / HTTP/1.1\r\nHost: " + f"{host}:{port}".encode() + b"\r\n\r\n")
                assert answer.read(12) == b"HTTP/1.1 401"


def test_on_a_thread_a_start_that_failed_can_be_tried_again() -> None:
    with reserved_port() as port:
        threaded = Coordinator(port=port).in_thread()
        with socket.create_server(("127.0.0.1", port)):
            for _ in range(2):
                with pytest.raises(OSError, match="address already in use"):
                    threaded.start()
        with threaded:
            assert threaded.bootstrap_servers == f"127.0.0.1:{port}"
            with pytest.raises(RuntimeError, match="already running"):
                threaded.start()


FORKS = """
import os, select, socket, sys
from loadwise.coordinator import Coordinator

held = socket.socket()  # so that no other process listens there in the end
held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
held.bind(("127.0.0.1", 0))
host, port = held.getsockname()
with Coordinator(port=port).in_thread():
    peer = socket.create_connection((host, port))
    peer.sendall(bytes.fromhex(sys.argv[1]))
    assert peer.recv(4)  # it is accepted
    while peer in select.select([peer], [], [], 0)[0]:
        peer.recv(65536)
    ready, begun = os.pipe()
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(write)
        os.write(begun, b"x")
        os.read(read, 1)  # until the parent is gone
        os._exit(0)
    os.read(ready, 1)  # the child has closed what is not its own
try:
    socket.create_connection((host, port))
except ConnectionRefusedError:
    print("refused,", "hung up on" if peer.recv(1) == b"" else "open")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_does_not_keep_its_sockets_open() -> None:
    request = beat()
    command = [sys.executable, "-W", "ignore", "-c", FORKS, request_bytes(request, 7, "peer", framed=True).hex()]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=WAIT_S)
    assert done.stdout == "refused, hung up on\n", done.stderr
