"""Metrics from Prometheus and from log directories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import kafka
import pytest
from uneven import PARTITIONS, leader_of

from loadwise.coordinator import ThreadedCoordinator
from loadwise.dispatcher import BadDispatcherError
from loadwise.dispatcher.metrics import LogDirGrowth, PromQL

# The example of an instant vector in Prometheus's documentation of its HTTP API, with labels of brokers.
VECTOR = {
    "status": "success",
    "data": {
        "resultType": "vector",
        "result": [
            {"metric": {"__name__": "up", "job": "kafka", "broker_id": "1"}, "value": [1435781451.781, "1"]},
            {"metric": {"__name__": "up", "job": "kafka", "broker_id": "2"}, "value": [1435781451.781, "0.5"]},
            {"metric": {"__name__": "up", "job": "other", "broker_id": "2"}, "value": [1435781451.781, "2"]},
        ],
    },
}


class Prometheus(BaseHTTPRequestHandler):
    answer: ClassVar[object] = VECTOR
    code: ClassVar[int] = 200
    queries: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        assert asked.path == "/api/v1/query"
        Prometheus.queries += parse_qs(asked.query)["query"]
        self.send_response(Prometheus.code)
        self.end_headers()
        self.wfile.write(json.dumps(Prometheus.answer).encode())

    def log_message(self, *_: object) -> None:
        """Nothing: the test's output is not a log."""


@pytest.fixture
def prometheus(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Prometheus, "queries", [])
    monkeypatch.setattr(Prometheus, "answer", VECTOR)
    monkeypatch.setattr(Prometheus, "code", 200)
    server = HTTPServer(("127.0.0.1", 0), Prometheus)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_values_of_a_query_are_those_of_brokers(prometheus: str) -> None:
    query = 'rate(bytes{topic=~"a|b"}[1m])'
    assert PromQL(prometheus, query, label="broker_id")() == {1: 1.0, 2: 2.5}
    assert Prometheus.queries == [query]


def test_labels_that_are_no_ids_are_mapped(prometheus: str) -> None:
    assert PromQL(prometheus, "up", label="job", nodes={"kafka": 7, "other": 8})() == {7: 1.5, 8: 2.0}


@pytest.mark.parametrize(
    ("options", "answer", "named"),
    [
        ({"label": "node"}, VECTOR, "no label 'node'"),
        ({"label": "job", "nodes": {"kafka": 7}}, VECTOR, "'other'"),
        ({"label": "job"}, {"data": {"resultType": "scalar", "result": [1, "1"]}}, "scalar"),
    ],
)
def test_what_cannot_be_read_is_named(prometheus: str, options: dict[str, object], answer: object, named: str) -> None:
    Prometheus.answer = answer
    with pytest.raises(ValueError, match=named):
        PromQL(prometheus, "up", **options)()


@pytest.mark.parametrize("code", [200, 400])
def test_the_reason_of_prometheus_is_named(prometheus: str, code: int) -> None:
    Prometheus.code = code
    Prometheus.answer = {"status": "error", "errorType": "bad_data", "error": "bad query"}
    with pytest.raises(ValueError, match="Prometheus refuses the query: bad query"):
        PromQL(prometheus, "up{", label="broker_id")()


@pytest.mark.parametrize("url", ["localhost:9090", "http://", "http:///api"])
def test_an_address_without_http_or_host_is_refused(url: str) -> None:
    with pytest.raises(BadDispatcherError, match=url):
        PromQL(url, "up", label="broker_id")


def test_an_argument_that_the_admin_client_does_not_know_is_refused() -> None:
    with pytest.raises(TypeError, match=r"LogDirGrowth\(\) has no argument 'client_idd' .did you mean 'client_id'"):
        LogDirGrowth("localhost:1", client_idd="x")
    with pytest.raises(ValueError, match="bootstrap_servers has 'a:b'; it must be HOST:PORT"):
        LogDirGrowth("a:b")


def test_log_directories_grow_where_records_are_written(cluster: ThreadedCoordinator, topic: str) -> None:
    clock = [0.0]
    growth = LogDirGrowth(cluster.bootstrap_servers, clock=lambda: clock[0])
    assert growth() is None
    with kafka.KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        for partition in range(PARTITIONS):
            if leader_of(partition) == 2:
                producer.send(topic, bytes(10_000), partition=partition)
    clock[0] = 10.0
    found = growth()
    assert found.keys() == {1, 2, 3}
    assert all(4 * 1000 < grown < 4 * 1100 for grown in found.values()), "each broker has a replica of each partition"
    clock[0] = 20.0
    assert set(growth().values()) == {0.0}
