"""A running group, read from a broker: ours, and Apache Kafka in its tier. Its members are the clients' own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.structs import OffsetAndMetadata
from polled import Polled, polled, settle
from topics import WAIT_S, fill, make_topic
from typer.testing import CliRunner

from loadwise.assignor.clients.kafka_python import kafka_consumer
from loadwise.cli.app import app
from loadwise.compare.errors import LiveGroupError
from loadwise.compare.live import members_of, racks_of, read_group
from loadwise.compare.situation import Uncommitted

RECORDS = (40, 30, 20, 10, 0, 0)


@pytest.fixture
def topic(broker: str) -> str:
    """Six partitions with so many records."""
    name = f"compare-{uuid.uuid4().hex[:12]}"
    make_topic(broker, name, len(RECORDS))
    fill(broker, name, RECORDS)
    return name


def config(broker: str, group_id: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker,
        "group_id": group_id,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 100,
    }


@pytest.fixture
def join() -> Iterator[Callable[..., Polled]]:
    """``join(make, topic, **config)``: a consumer that is polled until the test ends."""
    with ExitStack() as stack:
        yield lambda *args, **kwargs: stack.enter_context(polled(*args, **kwargs))


def test_a_group_of_stock_consumers(broker: str, topic: str, join: Callable[..., Polled], tmp_path: Path) -> None:
    settings = config(broker, f"group-{topic}")
    members = [
        join(KafkaConsumer, topic, **settings, partition_assignment_strategy=[RangePartitionAssignor]) for _ in range(2)
    ]
    settle(members, len(RECORDS))
    committing = next(member for member in members if TopicPartition(topic, 0) in member.assignment())
    # 15 of the 40 records in partition 0 are done; nothing is committed of 1 to 3, and 4 and 5 are empty.
    committing.call(lambda consumer: consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(15, "", -1)}))

    situation = read_group(broker, settings["group_id"])
    assert situation.load == {topic: [25, 30, 20, 10, 0, 0]}
    assert "3 of its partitions have no commit: all of their records counted" in situation.about
    from_the_end = read_group(broker, settings["group_id"], uncommitted=Uncommitted.LATEST)
    assert from_the_end.load == {topic: [25, 0, 0, 0, 0, 0]}
    assert "no records counted (--uncommitted latest)" in from_the_end.about
    assert sorted(sorted(member.owned[topic]) for member in situation.members) == [[0, 1, 2], [3, 4, 5]]
    assert {tuple(member.topics) for member in situation.members} == {(topic,)}
    assert {member.capacity for member in situation.members} == {1.0}

    connection = tmp_path / "client.properties"
    connection.write_text("security.protocol=PLAINTEXT\nclient.id=me\n")
    where = ["--bootstrap-servers", broker, "--group", settings["group_id"]]
    how = ["--command-config", str(connection), "--uncommitted", "latest"]
    result = CliRunner().invoke(app, ["compare", *where, *how, "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["assignors"][0]["mean_load"] == 12.5
    assert "runs under range" in told["about"]
    assert {row["assignor"]: row["moved"] for row in told["assignors"]}["range"] == 0, "as the group has it"
    assert {row["assignor"]: row["moved"] for row in told["assignors"]}["sticky"] == 0


def test_members_of_ours_say_their_capacity_rack_and_instance_id(
    broker: str, topic: str, join: Callable[..., Polled]
) -> None:
    settings = config(broker, f"group-{topic}") | {"assignor": "weighted"}
    fast = join(kafka_consumer, topic, **settings, capacity=3.25, group_instance_id="fast", client_rack="r1")
    slow = join(kafka_consumer, topic, **settings)
    settle([fast, slow], len(RECORDS))
    read = {member.instance_id: member for member in read_group(broker, settings["group_id"]).members}
    assert (read["fast"].capacity, read["fast"].rack) == (3.25, "r1")
    assert (read[None].capacity, read[None].rack) == (1.0, None)


def test_nobody_there(broker: str, topic: str) -> None:
    result = CliRunner().invoke(app, ["compare", "--bootstrap-servers", broker, "--group", f"nobody-{topic}"])
    assert result.exit_code == 1
    assert "nobody is in the group nobody-" in result.stderr


@pytest.mark.kafka
def test_a_group_under_the_new_protocol(apache_kafka: str) -> None:
    from confluent_kafka import Consumer

    topic = f"compare-{uuid.uuid4().hex[:12]}"
    make_topic(apache_kafka, topic, 2)
    consumer = Consumer({"bootstrap.servers": apache_kafka, "group.id": topic, "group.protocol": "consumer"})
    with closing(consumer):
        consumer.subscribe([topic])
        deadline = time.monotonic() + WAIT_S
        while not consumer.assignment():
            consumer.poll(0.1)
            assert time.monotonic() < deadline
        with pytest.raises(LiveGroupError, match="KIP-848"):
            read_group(apache_kafka, topic)


def described(**changes: Any) -> Any:
    """A description as DescribeGroups has it."""
    given = {
        "error_code": 0,
        "error_message": None,
        "group_id": "g",
        "group_state": "Stable",
        "protocol_type": "consumer",
        "protocol_data": "range",
        "members": [SimpleNamespace(member_id="m", member_metadata=b"", member_assignment=b"")],
    }
    return SimpleNamespace(**given | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"error_code": 30}, "does not describe the group g: error 30"),
        ({"protocol_type": "connect"}, "no group of consumers: its protocol type is 'connect'"),
        ({"group_state": "Empty", "members": []}, "nobody is in the group g"),
        ({"group_state": "PreparingRebalance"}, "rebalancing .its state is PreparingRebalance.; try again"),
        ({"error_code": 69, "group_state": "Dead", "members": []}, "nobody is in the group g; check the name"),
        (
            {"members": [SimpleNamespace(member_id="m", member_metadata=b"", member_assignment=b"\x00")]},
            "the assignment of member m cannot be read",
        ),
    ],
)
def test_groups_that_cannot_be_compared(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LiveGroupError, match=message):
        members_of(described(**changes))


def test_racks_of_replicas() -> None:
    brokers = [{"broker_id": 1, "rack": "a"}, {"broker_id": 2, "rack": "b"}, {"broker_id": 3, "rack": None}]
    partitions = [{"partition_index": 1, "replica_nodes": [3, 9]}, {"partition_index": 0, "replica_nodes": [2, 1, 3]}]
    nowhere = [{"partition_index": 0, "replica_nodes": [3]}]
    assert racks_of(brokers, {"t": partitions, "u": nowhere}) == {"t": [["a", "b"], []]}


def test_a_certificate_that_is_not_there(tmp_path: Path) -> None:
    connection = tmp_path / "client.properties"
    connection.write_text("security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=/no/such.pem\n")
    where = ["--bootstrap-servers", "127.0.0.1:1", "--group", "g"]
    result = CliRunner().invoke(app, ["compare", *where, "--command-config", str(connection)])
    assert (result.exit_code, result.stderr) == (
        2,
        "loadwise compare: there is no file /no/such.pem; see --command-config\n",
    )


# In a process of its own: kafka-python forgets to close the sockets of connections that were refused.
IMPATIENT = "from loadwise.compare import live; live._TIMEOUT_MS = 500; from loadwise.cli import main; main()"


@pytest.mark.parametrize(
    ("servers", "code", "message"),
    [("127.0.0.1:port", 2, "'127.0.0.1:port' is no HOST:PORT"), ("127.0.0.1:1", 1, "no Kafka answers at 127.0.0.1:1")],
)
def test_no_broker(servers: str, code: int, message: str) -> None:
    command = [sys.executable, "-c", IMPATIENT, "compare", "--bootstrap-servers", servers, "--group", "g"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert ran.returncode == code
    assert ran.stderr.startswith("loadwise compare: ")
    assert message in ran.stderr
