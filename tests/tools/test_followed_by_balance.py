"""``loadwise balance --follow`` on an Apache Kafka of three nodes: interrupted, and while one of them is stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import invoke
from confluent_kafka.admin import AdminClient, ConfigResource
from kafka_process import BrokerProcess
from missing import skipped_where_missing
from skewed_topics import PLACED, described, make_skewed_topics, produce
from three_kafkas import three_kafkas
from topics import WAIT_S, until

pytestmark = pytest.mark.kafka

THROTTLE, SLOW = "200kB", "10kB"
RECORDS = 1000
"""In each partition of the topic that moves: some seconds at the throttle, minutes at the slow one."""


@pytest.fixture
def nodes() -> Iterator[dict[int, BrokerProcess]]:
    with skipped_where_missing(), three_kafkas(missed_soon=True) as running:
        yield running


def _servers(nodes: dict[int, BrokerProcess]) -> str:
    return ",".join(node.address for node in nodes.values())


def _plan(servers: str, folder: Path) -> int:
    """Plan batches of one move a broker; how many there are."""
    asked = ["balance", "--bootstrap-servers", servers, "--interval", "0.5", "--exclude-topics", "__*"]
    planned = invoke([*asked, "--moves-per-broker", "1", "--out", str(folder), "--json"])
    assert planned.exit_code == 0, planned.output
    return len(json.loads(planned.stdout)["batches"])


def _following(servers: str, folder: Path, throttle: str = THROTTLE) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "loadwise", "balance", "--bootstrap-servers", servers, "--throttle", throttle]
    return subprocess.Popen(
        [*command, "--follow", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _throttles(servers: str) -> dict[str, str]:
    """The throttles that are set, by resource and name."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in PLACED]
    resources += [ConfigResource(ConfigResource.Type.BROKER, str(node)) for node in (1, 2, 3)]
    found = {}
    for resource in resources:
        for config in admin.describe_configs([resource])[resource].result(WAIT_S).values():
            if "replication.throttled" in config.name and config.value and not config.is_default:
                found[f"{resource.name} {config.name}"] = config.value
    return found


def _wanted(folder: Path) -> dict[tuple[str, int], list[int]]:
    rows = [row for path in folder.glob("batch-??.json") for row in json.loads(path.read_text())["partitions"]]
    return {(row["topic"], row["partition"]): row["replicas"] for row in rows}


def _is_as_planned(servers: str, folder: Path) -> bool:
    now = described(servers, "")
    return all(now.get(name, ([], 0)) == (replicas, replicas[0]) for name, replicas in _wanted(folder).items())


def _wait_until_moving(servers: str, process: subprocess.Popen[str]) -> None:
    """A partition has more replicas while it is reassigned."""

    def moving() -> bool:
        now = described(servers, "")
        return any(len(replicas) > 2 for (topic, _), (replicas, _) in now.items() if topic in PLACED)

    until(lambda: process.poll() is not None or moving(), lambda: described(servers, ""))
    assert process.poll() is None
    assert len(_throttles(servers)) >= 8  # two of each broker, and of each topic that moves


@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM, None], ids=["ctrl-c", "sigterm", "stopped broker"])
def test_what_is_interrupted_is_undone_and_goes_on_later(
    ends: signal.Signals | None, nodes: dict[int, BrokerProcess], tmp_path: Path
) -> None:
    servers = _servers(nodes)
    make_skewed_topics(servers, "")
    produce(servers, "orders", [RECORDS] * len(PLACED["orders"]))
    assert _plan(servers, tmp_path) >= 3
    process = _following(servers, tmp_path, SLOW)
    _wait_until_moving(servers, process)
    if ends is None:
        nodes[3].kill()
    else:
        process.send_signal(ends)
    out, err = process.communicate(timeout=WAIT_S)
    assert not _is_as_planned(servers if ends else nodes[1].address, tmp_path)
    if ends is None:
        assert process.returncode == 1
        assert "broker 3" in err, "which metadata or a request that it refuses shows first"
        assert "run --follow again" in err
        nodes[3].start()
        until(lambda: len(_throttles(servers)) <= 2, lambda: _throttles(servers))  # the rates of broker 3
    else:
        assert process.returncode == 130
        assert _throttles(servers) == {}
    assert "cancelled" in out
    again = _following(servers, tmp_path)
    out, err = again.communicate(timeout=4 * WAIT_S)
    assert (again.returncode, err) == (0, ""), out
    assert out.endswith("All batches are complete.\n")
    assert _is_as_planned(servers, tmp_path)
    assert _throttles(servers) == {}
