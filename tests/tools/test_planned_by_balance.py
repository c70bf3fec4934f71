"""The plan of ``loadwise balance``, executed by Kafka's own tools: on an Apache Kafka of three nodes, and on ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import invoke
from kafka_tools import Tools
from missing import skipped_where_missing
from skewed_topics import PLACED, WIDE, arrivals, described, make_skewed_topics
from three_kafkas import three_kafkas
from topics import until

from loadwise.coordinator import Coordinator

pytestmark = pytest.mark.kafka


@pytest.fixture(params=["apache", "ours"])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "ours":
        with Coordinator(brokers=3).in_thread() as running:
            yield running.bootstrap_servers
    else:
        with skipped_where_missing(), three_kafkas(missed_soon=False) as nodes:
            yield ",".join(node.address for node in nodes.values())


def test_kafkas_tools_make_the_cluster_as_planned(servers: str, tools: Tools, tmp_path: Path) -> None:
    make_skewed_topics(servers, "", {**PLACED, **WIDE})
    asked = ["balance", "--bootstrap-servers", servers, "--interval", "2", "--json", "--out", str(tmp_path)]
    asked += ["--moves-per-broker", "2"]
    with arrivals(servers, "wide", [1] * 3):
        planned = invoke(asked)
    assert planned.exit_code == 0, planned.output
    told = json.loads(planned.stdout)
    expected = described(servers, "")
    reordered = [
        each
        for each in told["reassignment"]["partitions"]
        if set(each["replicas"]) == set(expected[each["topic"], each["partition"]][0])
    ]
    assert 0 < len(reordered) < len(told["reassignment"]["partitions"])
    for each in told["reassignment"]["partitions"]:
        expected[each["topic"], each["partition"]] = (each["replicas"], expected[each["topic"], each["partition"]][1])
    for each in told["leader_election"]["partitions"]:
        replicas, _ = expected[each["topic"], each["partition"]]
        expected[each["topic"], each["partition"]] = (replicas, replicas[0])

    connection = ["--bootstrap-server", servers]
    count = 0
    for number in range(1, len(told["batches"]) + 1):
        file, leaders = tmp_path / f"batch-{number:02}.json", tmp_path / f"batch-{number:02}-leaders.json"
        if file.exists():
            count += _executed(tools, [*connection, "--reassignment-json-file", str(file)])
        if leaders.exists():
            election = [*connection, "--election-type", "preferred", "--path-to-json-file", str(leaders)]
            elected = tools.run("kafka-leader-election.sh", *election)
            assert elected[-1] == "ended 0", elected
    assert count == len(told["reassignment"]["partitions"])
    until(lambda: described(servers, "") == expected, lambda: (described(servers, ""), expected))


def _executed(tools: Tools, reassign: list[str]) -> int:
    """Execute a batch, throttled, and verify it until it is complete; how many partitions it has."""
    executed = tools.run("kafka-reassign-partitions.sh", *reassign, "--execute", "--throttle", "50000000")
    assert any("Successfully started partition reassignment" in line for line in executed), executed
    count = len(json.loads(Path(reassign[-1]).read_text())["partitions"])

    def verified() -> list[str]:
        return tools.run("kafka-reassign-partitions.sh", *reassign, "--verify")

    until(lambda: sum("is completed" in line for line in verified()) == count, verified)
    return count
