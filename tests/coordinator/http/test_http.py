"""Control over HTTP: the program and its clients are other processes; then what it refuses, and from whom."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import GroupAuthorizationFailedError
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer

from loadwise.coordinator import Coordinator, HttpOptions, NotLoopbackError, NotRunningError, WeakTokenError
from loadwise.coordinator.embedding.http import api
from loadwise.coordinator.embedding.http.server import HttpLimits, HttpRequest, HttpResponse, HttpServer
from loadwise.coordinator.embedding.threaded import ThreadedCoordinator

TOKEN = "a token of a test"
WAIT_S = 90


class Http:
    """A client of the API that is not ours."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token

    def __call__(self, method: str, path: str, **body: Any) -> Any:
        """Ask, and answer with what came; raises `urllib.error.HTTPError` for a refusal."""
        data = json.dumps(body).encode() if body else b"" if method == "POST" else None
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return json.load(answer)

    def refusal(self, method: str, path: str, **body: Any) -> tuple[int, str]:
        with pytest.raises(urllib.error.HTTPError) as raised:
            self(method, path, **body)
        with raised.value as answer:
            return answer.code, json.load(answer)["error"]


@contextmanager
def program(*options: str, token: str = TOKEN) -> Iterator[tuple[str, str, str]]:
    """A running ``loadwise coordinator``: its address, and the URL and token of its HTTP."""
    command = [sys.executable, "-m", "loadwise", "coordinator", "--topic", "t:2", *options]
    environment = os.environ | {"LOADWISE_HTTP_TOKEN": token}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            ready = re.fullmatch(r"loadwise coordinator ready at (\S+)\n", process.stdout.readline())
            http = re.fullmatch(
                r"loadwise coordinator HTTP at (http://\S+?)(?:, token (\S+))?\n", process.stdout.readline()
            )
            assert ready
            assert http
            yield ready[1], http[1], http[2] or token
        finally:
            process.terminate()
            process.wait(WAIT_S)


# ---- from another process ----


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[str, Http]]:
    with program("--http", "127.0.0.1:0", "--brokers", "2") as (address, url, token):
        yield address, Http(url, token)


async def commit(address: str, group_id: str) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=address, group_id=group_id, enable_auto_commit=False, retry_backoff_ms=20
    )
    consumer.assign([TopicPartition("t", 0)])
    async with consumer:
        await consumer.commit({TopicPartition("t", 0): 3})


async def test_a_fault_asked_for_over_http_is_met_by_a_real_client(running: tuple[str, Http]) -> None:
    address, http = running
    conditions = {"action": "answer", "api": "OffsetCommit", "group": "refused", "times": None}
    fault = http("POST", "/faults", error="GROUP_AUTHORIZATION_FAILED", **conditions)
    with pytest.raises(GroupAuthorizationFailedError):
        await commit(address, "refused")
    assert http("GET", f"/faults/{fault['id']}")["hits"] >= 1
    assert [each["id"] for each in http("GET", "/faults")["faults"]] == [fault["id"]]
    http("DELETE", f"/faults/{fault['id']}")
    await commit(address, "refused")
    assert [each["committed"] for each in http("GET", "/groups/refused")["partitions"]] == [3]


@pytest.mark.parametrize(
    "fault",
    [
        {"action": "delay", "ms": 1},
        {"action": "disconnect"},
        {"action": "disconnect", "after_handling": True},
        {"action": "answer", "error": 16},
    ],
    ids=str,
)
async def test_every_action_can_be_asked_for(running: tuple[str, Http], fault: dict[str, Any]) -> None:
    address, http = running
    made = http("POST", "/faults", api="OffsetCommit", **fault)
    assert {name: made[name] for name in fault if name != "error"} == {
        name: value for name, value in fault.items() if name != "error"
    }
    await commit(address, "every")
    assert http("GET", f"/faults/{made['id']}")["hits"] == 1, "it can be asked for after it is used up"
    assert http("GET", "/faults") == {"faults": []}
    http("POST", "/faults", action="drop", api="*")
    assert http("DELETE", "/faults") == {}


async def test_the_command_in_the_documentation_does_what_it_says(running: tuple[str, Http]) -> None:
    shell, curl = shutil.which("sh"), shutil.which("curl")
    if shell is None or curl is None:
        pytest.skip("the documentation drives the API with curl, which is not here: apt-get install curl")
    documentation = (Path(__file__).parents[3] / "docs" / "testing-http.md").read_text(encoding="utf-8")
    command = re.search(r"```sh\n(curl .*?)```", documentation, flags=re.DOTALL)
    assert command is not None
    _, http = running
    as_here, replaced = re.subn(r"http://127\.0\.0\.1:\d+", http.url, command[1])
    assert replaced == 1
    process = await asyncio.create_subprocess_exec(
        shell, "-c", as_here, env=os.environ | {"TOKEN": http.token}, stdout=asyncio.subprocess.PIPE
    )
    answer, _ = await asyncio.wait_for(process.communicate(), WAIT_S)
    fault = json.loads(answer)
    asked = {"api": "Heartbeat", "action": "answer", "error": "REBALANCE_IN_PROGRESS", "group": "orders"}
    assert fault.items() >= asked.items()
    assert http("GET", "/faults")["faults"] == [fault]
    http("DELETE", "/faults")


async def test_a_group_is_acted_on_over_http(running: tuple[str, Http]) -> None:
    address, http = running
    http("POST", "/topics", name="http", partitions=3)
    consumer = AIOKafkaConsumer(
        "http",
        bootstrap_servers=address,
        group_id="a/b",
        group_instance_id="one",
        enable_auto_commit=False,
        heartbeat_interval_ms=200,
        retry_backoff_ms=20,
    )
    async with consumer, asyncio.timeout(WAIT_S):
        generation = 0
        for act, body in (
            ("rebalance", {}),
            ("kick", {"member": "one"}),
            ("expire-session", {"member": "one"}),
        ):
            while True:
                group = http("GET", "/groups/a%2Fb")
                is_settled = group["state"] == "Stable" and group["generation"] > generation
                if is_settled and group["members"][0]["assignment"] == {"http": [0, 1, 2]}:
                    break
                await asyncio.sleep(0.05)
            generation = group["generation"]
            assert http("POST", f"/groups/a%2Fb/{act}", **body) == {}
    assert http("POST", "/groups/a%2Fb/move-coordinator") == {}
    assert http("POST", "/topics/http/2/move-leader") == {}
    reasons = [moment["reason"] for moment in http("GET", "/groups/a%2Fb")["history"]]
    for reason in (
        "forced by a test",
        "one-.* left",
        "the session of one-.* expired",
        "another broker is its coordinator now",
    ):
        assert any(re.fullmatch(reason, each) for each in reasons), reason


def test_a_cluster_is_brought_into_trouble_over_http() -> None:
    with program("--brokers", "3", "--http", "127.0.0.1:0") as (address, url, token):
        http = Http(url, token)

        def told() -> tuple[set[int], int, list[int]]:
            # A client for each look: one that is connected may ask the broker that stops.
            client = AdminClient({"bootstrap.servers": address, "log_level": 0})
            metadata = client.list_topics("t", timeout=WAIT_S)
            partition = metadata.topics["t"].partitions[0]
            return set(metadata.brokers), partition.leader, sorted(partition.isrs)

        _, leader, _ = told()
        others = sorted({1, 2, 3} - {leader})
        assert http("POST", "/topics/t/0/isr", brokers=[leader]) == {}
        assert told() == ({1, 2, 3}, leader, [leader])
        assert http("POST", "/topics/t/0/isr", brokers=[1, 2, 3]) == {}
        assert http("POST", f"/brokers/{leader}/stop") == {}
        assert told()[0] == set(others)
        assert told()[2] == others
        assert http("POST", f"/brokers/{leader}/start") == {}
        assert told()[0] == {1, 2, 3}
        assert http("POST", "/topics/t/0/drop-leader") == {}
        assert told()[1] == -1
        assert http("POST", "/topics/t/0/move-leader", to=leader) == {}
        assert told()[1] == leader
        assert http("POST", "/transactions/x/move-coordinator", to=2) == {}
        assert http("POST", "/faults", api="Fetch", action="corrupt")["action"] == "corrupt"
        assert http.refusal("POST", "/faults", api="Produce", action="corrupt")[0] == 400
        for path, body in (
            ("/brokers/9/stop", {}),
            ("/brokers/1/start", {}),
            ("/topics/t/0/isr", {"brokers": [9]}),
            ("/topics/t/0/isr", {"brokers": ["1"]}),
            ("/topics/t/9/drop-leader", {}),
            ("/transactions/x/move-coordinator", {"to": 9}),
        ):
            assert http.refusal("POST", path, **body)[0] == 400


def test_snapshots_are_taken_and_put_back_over_http(running: tuple[str, Http]) -> None:
    address, http = running
    producer = KafkaProducer(bootstrap_servers=address)
    http("POST", "/topics", name="filled")
    producer.send("filled", b"a", partition=0).get(WAIT_S)
    taken = http("POST", "/snapshots")["id"]
    producer.send("filled", b"b", partition=0).get(WAIT_S)
    assert http("POST", f"/snapshots/{taken}/restore") == {}
    assert producer.send("filled", b"c", partition=0).get(WAIT_S).offset == 1
    producer.close()
    assert http("GET", "/snapshots") == {"snapshots": [taken]}
    assert http("DELETE", f"/snapshots/{taken}") == {}
    assert http.refusal("POST", f"/snapshots/{taken}/restore") == (
        404, f"there is no snapshot {taken}; existing ones: none"
    )  # fmt: skip


async def test_so_many_snapshots_are_kept(served: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_MOST_SNAPSHOTS", 1)
    assert (await exchange(served.http_url, request(served.http_url, "POST /snapshots")))[0] == HTTPStatus.OK
    status, _, body = await exchange(served.http_url, request(served.http_url, "POST /snapshots"))
    assert (status, b"delete some" in body) == (HTTPStatus.BAD_REQUEST, True)
    assert (await exchange(served.http_url, request(served.http_url, "DELETE /snapshots/1")))[0] == HTTPStatus.OK
    assert (await exchange(served.http_url, request(served.http_url, "POST /snapshots")))[0] == HTTPStatus.OK


def test_the_clock_is_stopped_and_stepped_over_http(running: tuple[str, Http]) -> None:
    _, http = running
    frozen = http("POST", "/clock/freeze")
    assert http("GET", "/clock") == frozen == {"now_ms": frozen["now_ms"], "is_frozen": True}
    assert http("POST", "/clock/step", ms=60_000)["now_ms"] == frozen["now_ms"] + 60_000
    assert http("POST", "/clock/resume")["is_frozen"] is False


@pytest.mark.parametrize(
    ("asked", "body", "status", "complaint"),
    [
        ("GET /nothing", {}, 404, "GET /nothing does not exist"),
        ("PUT /groups", {}, 404, "PUT /groups does not exist"),
        ("POST /nothing", {}, 404, "POST /nothing does not exist"),
        ("GET /groups/nobody", {}, 404, "no group 'nobody'"),
        ("POST /groups/nobody/rebalance", {}, 404, "no group 'nobody'"),
        ("GET /faults/999999", {}, 404, "no fault 999999"),
        ("GET /faults/x", {}, 400, "'x' is not a number"),
        ("POST /groups/nobody/kick", {}, 400, "member is missing"),
        ("POST /groups/nobody/kick", {"member": 3}, 400, "member is 3; it must be str"),
        ("POST /groups/nobody/kick", {"membr": "m"}, 400, "no field 'membr'; the fields are: member"),
        ("POST /clock/step", {"ms": -1}, 400, "cannot go back"),
        ("POST /clock/step", {"ms": 10**12}, 400, "the limit is 31,622,400,000 ms"),
        ("POST /clock/step", {"ms": True}, 400, "ms is True; it must be int"),
        ("POST /faults", {"action": "delay", "api": "Fetch", "ms": 10**30}, 400, "it must be 0 to 2,147,483,647"),
        ("POST /faults", {"action": "drop", "api": "Fetch", "skip": 10**30}, 400, "skip 0 up to 2,147,483,647"),
        ("POST /faults", {"action": "drop"}, 400, "api is missing"),
        ("POST /faults", {"api": "Fetch", "action": "explode"}, 400, "one of answer, delay, drop, disconnect"),
        ("POST /faults", {"api": "Fetch", "action": ["drop"]}, 400, "one of answer"),
        ("POST /faults", {"api": "Fetch", "action": "answer"}, 400, "error is missing"),
        ("POST /faults", {"api": "Fetch", "action": "answer", "error": "NO"}, 400, "'NO' is not the name"),
        ("POST /faults", {"api": "Fetch", "action": "drop", "ms": 3}, 400, "no field 'ms'"),
        ("POST /faults", {"api": "Fetch", "action": "drop", "times": "3"}, 400, "it must be int or null"),
        ("POST /faults", {"api": "Fetched", "action": "drop"}, 400, "no API 'Fetched'"),
        ("POST /topics", {"name": "a/b"}, 400, "Topic name is invalid: 'a/b'"),
        ("POST /topics/t/9/move-leader", {}, 400, "t"),
    ],
)
def test_what_it_cannot_do_it_says(
    running: tuple[str, Http], asked: str, body: dict[str, Any], status: int, complaint: str
) -> None:
    code, message = running[1].refusal(*asked.split(" "), **body)
    assert code == status
    assert complaint in message


def test_a_token_is_made_up_if_there_is_none_and_then_it_is_shown() -> None:
    with program("--http", "127.0.0.1:0", token="") as (_, url, token):
        assert len(token) >= 32
        assert Http(url, token)("GET", "/groups")["groups"] == []


# ---- who may, and how ----


@pytest.fixture
async def served() -> AsyncIterator[Coordinator]:
    async with Coordinator({"t": 1}, http=HttpOptions(token=TOKEN)) as coordinator:
        yield coordinator


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def exchange(url: str, request: str) -> tuple[int, dict[str, str], bytes]:
    """Send bytes, and read one answer as it stands on the wire."""
    async with connected(url) as (reader, writer):
        writer.write(request.encode("latin-1"))
        return await _read(reader)


async def test_a_head_request_gets_no_body(served: Coordinator) -> None:
    async with connected(served.http_url) as (reader, writer):
        writer.write(request(served.http_url, "HEAD /groups").encode() + request(served.http_url).encode())
        async with asyncio.timeout(WAIT_S):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 404 ")
        assert (await _read(reader))[0] == HTTPStatus.OK


async def _read(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    async with asyncio.timeout(WAIT_S):
        status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        return int(status.split()[1]), headers, await reader.readexactly(int(headers["content-length"]))


def request(url: str, line: str = "GET /groups", *headers: str, token: str | None = TOKEN) -> str:
    host = "" if any(each.startswith("Host:") for each in headers) else f"Host: {url.removeprefix('http://')}\r\n"
    bearer = "" if token is None else f"Authorization: Bearer {token}\r\n"
    return f"{line} HTTP/1.1\r\n{host}{bearer}" + "".join(f"{each}\r\n" for each in headers) + "\r\n"


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "127.0.0.1:1", "rebound.example:{port}"])
async def test_a_name_that_is_not_its_own_is_not_answered_even_with_the_token(served: Coordinator, host: str) -> None:
    port = served.http_url.rpartition(":")[2]
    status, _, body = await exchange(
        served.http_url, request(served.http_url, "GET /groups", f"Host: {host.format(port=port)}")
    )
    assert status == HTTPStatus.MISDIRECTED_REQUEST
    assert b"the header Host" in body


async def test_every_name_of_its_own_is_answered(served: Coordinator) -> None:
    port = served.http_url.rpartition(":")[2]
    for host in (f"127.0.0.1:{port}", f"LocalHost:{port}", f"[::1]:{port}"):
        status, headers, _ = await exchange(served.http_url, request(served.http_url, "GET /groups", f"Host: {host}"))
        assert status == HTTPStatus.OK
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    ("origin", "status"),
    [("https://example.org", 403), ("null", 403), ("http://127.0.0.1:1", 403), ("http://127.0.0.1:{port}", 200)],
)
async def test_other_sites_are_not_answered(served: Coordinator, origin: str, status: int) -> None:
    port = served.http_url.rpartition(":")[2]
    header = f"Origin: {origin.format(port=port)}"
    assert (await exchange(served.http_url, request(served.http_url, "GET /groups", header)))[0] == status


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN + "x", TOKEN[:-1], TOKEN.upper(), "\xff\xfe"])
@pytest.mark.parametrize("line", ["GET /groups", "GET /", "POST /clock/freeze", "GET /nothing", "DELETE /faults"])
async def test_nothing_is_done_or_said_without_the_token(served: Coordinator, token: str | None, line: str) -> None:
    status, headers, _ = await exchange(served.http_url, request(served.http_url, line, token=token))
    assert (status, headers["www-authenticate"]) == (HTTPStatus.UNAUTHORIZED, "Bearer")
    assert not served.clock.is_frozen


async def test_an_open_view_may_be_read_without_the_token_and_that_is_all() -> None:
    async with Coordinator(http=HttpOptions(token=TOKEN, open_view=True)) as coordinator:
        url = coordinator.http_url
        for line, status in {
            "GET /": 200,
            "GET /?x=1": 200,
            "GET /groups": 200,
            "GET /groups/nobody": 404,
            "GET /clock": 200,
            "GET /faults": 401,
            "POST /clock/freeze": 401,
            "POST /groups": 401,
            "DELETE /faults": 401,
        }.items():
            assert (await exchange(url, request(url, line, token=None)))[0] == status, line
        _, headers, page = await exchange(url, request(url, "GET /", token=None))
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'sha256-")
        assert page.startswith(b"<!doctype html>")


@pytest.mark.parametrize(
    ("headers", "body", "complaint"),
    [
        (["Content-Type: text/plain"], '{"ms": 1}', "Content-Type: application/json"),
        ([], '{"ms": 1}', "Content-Type: application/json"),
        (["Content-Type: application/json"], '{"ms": ', "not JSON"),
        (["Content-Type: application/json"], "[" * 50_000, "not JSON"),
        (["Content-Type: application/json"], "[1]", "a JSON object"),
        (["Content-Type: application/json"], "\xff", "not JSON"),
    ],
)
async def test_a_body_that_is_no_json_object_is_refused(
    served: Coordinator, headers: list[str], body: str, complaint: str
) -> None:
    head = request(served.http_url, "POST /clock/step", *headers, f"Content-Length: {len(body)}")
    status, _, answer = await exchange(served.http_url, head + body)
    assert status == HTTPStatus.BAD_REQUEST
    assert complaint.encode() in answer


async def test_one_connection_takes_many_requests(served: Coordinator) -> None:
    async with connected(served.http_url) as (reader, writer):
        writer.write(request(served.http_url).encode() * 3)
        for _ in range(3):
            assert (await _read(reader))[0] == HTTPStatus.OK


async def test_what_is_no_http_or_too_large_is_refused(served: Coordinator) -> None:
    url = served.http_url
    assert (await exchange(url, "\x16\x03\x01 hello\r\n\r\n"))[0] == HTTPStatus.BAD_REQUEST
    long_head = request(url, "GET /groups", f"X: {'x' * 20_000}")
    assert (await exchange(url, long_head))[0] == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    assert (await exchange(url, request(url, "GET *")))[0] == HTTPStatus.NOT_FOUND
    large = request(url, "POST /clock/step", "Content-Length: 70000") + "x" * 70_000
    assert (await exchange(url, large))[0] == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert (await exchange(url, request(url)))[0] == HTTPStatus.OK, "the next one is served"


def echo(request: HttpRequest) -> HttpResponse:
    if request.path == "/fail":
        raise ZeroDivisionError
    return HttpResponse(body=request.body)


@asynccontextmanager
async def listening(**limits: Any) -> AsyncIterator[HttpServer]:
    server = HttpServer(echo, "127.0.0.1", 0, HttpLimits(**limits))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
        assert not server.connections


async def test_a_slow_peer_is_hung_up_on() -> None:
    async with (
        listening(request_timeout_s=0.05) as server,
        asyncio.timeout(WAIT_S),
        connected(server.url) as (reader, writer),
    ):
        writer.write(b"GET / HT")
        with suppress(ConnectionResetError):  # its time may be over before its bytes are read
            assert await reader.read() == b""


async def test_a_peer_that_does_not_read_its_answers_is_hung_up_on() -> None:
    """It would take a place among the connections for ever."""
    async with listening(request_timeout_s=1) as server, asyncio.timeout(WAIT_S):
        _, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]), limit=1)
        with suppress(ConnectionError):
            # Unless its second is over before: nothing is raised for what is written then.
            while not (writer.is_closing() or any(each.unsent_bytes for each in server.connections)):
                writer.write(request(server.url).encode() * 100)
                await asyncio.sleep(0)
        while server.connections:  # noqa: ASYNC110 (nothing tells of it)
            await asyncio.sleep(0.01)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: "], ids=["nothing", "half a request"])
async def test_a_new_connection_closes_the_one_that_was_unused_for_longest(sent: bytes) -> None:
    """Silent connections do not lock others out, and one that asked before they came is kept."""
    async with listening(request_timeout_s=3600, max_connections=5) as server, asyncio.timeout(WAIT_S):
        port = int(server.url.rpartition(":")[2])

        async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(request(server.url).encode())
            assert (await _read(reader))[0] == HTTPStatus.OK

        early = await asyncio.open_connection("127.0.0.1", port)
        await ask(*early)
        silent = []
        for _ in range(10):
            silent.append(await asyncio.open_connection("127.0.0.1", port))
            silent[-1][1].write(sent)
        late = await asyncio.open_connection("127.0.0.1", port)
        await ask(*late)
        await ask(*early)
        assert len(server.connections) <= 5
        for reader, _ in silent[:-3]:
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        for _, writer in (*silent, early, late):
            writer.transport.abort()


async def test_a_failure_of_ours_is_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with listening() as server:
        status, _, body = await exchange(server.url, request(server.url, "GET /fail"))
    assert (status, b"see its log" in body) == (HTTPStatus.INTERNAL_SERVER_ERROR, True)
    assert "ZeroDivisionError" in caplog.text


async def test_stopping_hangs_up_on_whoever_is_connected(served: Coordinator) -> None:
    async with connected(served.http_url) as (reader, writer):
        writer.write(request(served.http_url).encode())
        assert (await _read(reader))[0] == HTTPStatus.OK
        await served.stop()
        async with asyncio.timeout(WAIT_S):
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
    with pytest.raises(NotRunningError):
        _ = served.http_url


def test_it_is_off_unless_asked_for_and_never_leaves_the_machine() -> None:
    with Coordinator().in_thread() as coordinator, pytest.raises(NotRunningError, match=r"http=HttpOptions\(\)"):
        _ = coordinator.http_url
    for host in ("0.0.0.0", "192.0.2.1", "example.org", ""):
        with pytest.raises(NotLoopbackError, match="loopback only"):
            Coordinator(http=HttpOptions(host=host), allow_remote=True)
    with pytest.raises(WeakTokenError, match="at least 16"):
        Coordinator(http=HttpOptions(token="short"))


def test_on_a_thread_it_is_served_too() -> None:
    with Coordinator(http=HttpOptions()).in_thread() as coordinator:
        assert isinstance(coordinator, ThreadedCoordinator)
        assert Http(coordinator.http_url, coordinator.http_token)("GET", "/groups")["groups"] == []


async def test_a_peer_that_does_not_read_is_not_answered_on_and_on() -> None:
    handled = 0

    def handle(request: HttpRequest) -> HttpResponse:
        nonlocal handled
        handled += 1
        return HttpResponse(body=bytes(50_000))

    server = HttpServer(handle, "127.0.0.1", 0)
    await server.start()
    port = int(server.url.rpartition(":")[2])
    ask = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port
    async with asyncio.timeout(WAIT_S):
        reader, greedy = await asyncio.open_connection("127.0.0.1", port)
        greedy.write(ask * 2000)
        for _ in range(20):
            other, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(ask)
            assert await other.readuntil(b"\r\n") == b"HTTP/1.1 200 OK\r\n"
            writer.close()
        assert 20 < handled < 1000, "what does not fit into the sockets' buffers waits unanswered"
        for _ in range(300):
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"200 OK" in head
            await reader.readexactly(50_000)
        greedy.transport.abort()
        await server.stop()
