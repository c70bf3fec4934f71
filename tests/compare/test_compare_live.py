"""A running group, read from a broker: ours, and Apache Kafka in its tier. Its members are the clients' own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke
from confluent_kafka import Consumer
from kafka import KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.structs import OffsetAndMetadata
from polled import POLL_MS, Polled, know, polled, settle
from topics import WAIT_S, fill, give_heartbeats_time, make_topic

from loadwise import kafka_python_consumer
from loadwise.compare.errors import LiveGroupError
from loadwise.compare.live import read_situation
from loadwise.compare.situation import LiveLoad, Uncommitted
from loadwise.coordinator import ThreadedCoordinator
from loadwise.running_group.admin import connected
from loadwise.running_group.members import RunningGroup
from loadwise.running_group.reading import read_group

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


def described(broker: str, group_id: str) -> RunningGroup:
    with connected(broker, client_id="test") as admin:
        return read_group(admin, group_id)


def test_a_group_of_stock_consumers(broker: str, topic: str, join: Callable[..., Polled], tmp_path: Path) -> None:
    settings = config(broker, f"group-{topic}")
    members = [
        join(KafkaConsumer, topic, **settings, partition_assignment_strategy=[RangePartitionAssignor]) for _ in range(2)
    ]
    settle(members, len(RECORDS))
    committing = next(member for member in members if TopicPartition(topic, 0) in member.assignment())
    # 15 of the 40 records in partition 0 are done; nothing is committed of 1 to 3, and 4 and 5 are empty.
    committing.call(lambda consumer: consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(15, "", -1)}))

    situation = read_situation(broker, settings["group_id"])
    assert situation.load == {topic: [25, 30, 20, 10, 0, 0]}
    assert "3 of its partitions have no commit: all of their records counted" in situation.about
    from_the_end = read_situation(broker, settings["group_id"], uncommitted=Uncommitted.LATEST)
    assert from_the_end.load == {topic: [25, 0, 0, 0, 0, 0]}
    assert "no records counted (--uncommitted latest)" in from_the_end.about
    assert sorted(sorted(member.owned[topic]) for member in situation.members) == [[0, 1, 2], [3, 4, 5]]
    assert {tuple(member.topics) for member in situation.members} == {(topic,)}
    assert {member.capacity for member in situation.members} == {1.0}

    connection = tmp_path / "client.properties"
    connection.write_text("security.protocol=PLAINTEXT\nclient.id=me\n")
    where = ["--bootstrap-servers", broker, "--group", settings["group_id"]]
    how = ["--command-config", str(connection), "--uncommitted", "latest"]
    result = invoke(["compare", *where, *how, "--json"])
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
    fast = join(kafka_python_consumer, topic, **settings, capacity=3.25, group_instance_id="fast", client_rack="r1")
    slow = join(kafka_python_consumer, topic, **settings)
    settle([fast, slow], len(RECORDS))
    read = {member.instance_id: member for member in read_situation(broker, settings["group_id"]).members}
    assert (read["fast"].capacity, read["fast"].rack) == (3.25, "r1")
    assert (read[None].capacity, read[None].rack) == (1.0, None)


def test_a_group_that_rebalances(broker: str, topic: str, join: Callable[..., Polled]) -> None:
    """A consumer that is not polled does not join again: the rebalance for the second member waits for it."""
    settings = config(broker, f"group-{topic}")
    with closing(KafkaConsumer(topic, **settings, partition_assignment_strategy=[RangePartitionAssignor])) as first:
        know(first)
        deadline = time.monotonic() + WAIT_S
        while not first.assignment():
            first.poll(timeout_ms=POLL_MS)
            assert time.monotonic() < deadline
        join(KafkaConsumer, topic, **settings, partition_assignment_strategy=[RangePartitionAssignor])
        while len(joining := described(broker, settings["group_id"]).members) < 2:
            assert time.monotonic() < deadline, joining
        with pytest.raises(LiveGroupError, match=r"is rebalancing \(its state is PreparingRebalance\); try again"):
            read_situation(broker, settings["group_id"])


def test_nobody_there(broker: str, topic: str) -> None:
    result = invoke(["compare", "--bootstrap-servers", broker, "--group", f"nobody-{topic}"])
    assert result.exit_code == 1
    assert "has no members; check the name" in result.stderr


def test_a_group_under_the_new_protocol(broker: str, coordinator: ThreadedCoordinator, topic: str) -> None:
    """KIP-848: the broker assigns, and tells who has what by another request."""
    if broker != coordinator.bootstrap_servers:
        give_heartbeats_time(broker, topic)
    settings = {"bootstrap.servers": broker, "group.id": topic, "group.protocol": "consumer"}
    with ExitStack() as stack:
        consumers = [Consumer({**settings, "client.id": name}) for name in ("one", "two")]
        for consumer in consumers:
            stack.enter_context(closing(consumer)).subscribe(["^" + topic])
        deadline = time.monotonic() + WAIT_S
        while [len(consumer.assignment()) for consumer in consumers] != [3, 3]:
            for consumer in consumers:
                consumer.poll(0.05)
            assert time.monotonic() < deadline
        # The members have what they shall have, and the broker hears of it by their next heartbeats.
        while True:
            with suppress(LiveGroupError):
                situation = read_situation(broker, topic)
                break
            for consumer in consumers:
                consumer.poll(0.05)
            assert time.monotonic() < deadline
    assert sorted(len(member.owned[topic]) for member in situation.members) == [3, 3]
    assert {tuple(member.topics) for member in situation.members} == {(topic,)}
    assert set(situation.labels.values()) == {"one", "two"}
    assert "KIP-848" in situation.about


def test_what_arrived_in_the_last_minute(broker: str, topic: str, join: Callable[..., Polled]) -> None:
    """All records were produced a moment ago: those of the last minute are all of them."""
    settings = config(broker, f"group-{topic}") | {"assignor": "range"}
    member = join(kafka_python_consumer, topic, **settings)
    settle([member], len(RECORDS))
    rate = read_situation(broker, settings["group_id"], load=LiveLoad.RATE)
    assert rate.load == {topic: [count / 60 for count in RECORDS]}
    demand = read_situation(broker, settings["group_id"], load=LiveLoad.DEMAND, horizon_s=30.0)
    assert demand.load is not None
    assert list(demand.load[topic]) == pytest.approx([count / 60 + count / 30 for count in RECORDS])


def test_a_certificate_that_is_not_there(tmp_path: Path) -> None:
    connection = tmp_path / "client.properties"
    connection.write_text("security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=/no/such.pem\n")
    where = ["--bootstrap-servers", "127.0.0.1:1", "--group", "g"]
    result = invoke(["compare", *where, "--command-config", str(connection)])
    assert (result.exit_code, result.stderr) == (
        2,
        "loadwise compare: there is no file /no/such.pem; see --command-config\n",
    )


# In a process of its own: kafka-python forgets to close the sockets of connections that were refused.
IMPATIENT = "from loadwise.running_group import admin; admin._TIMEOUT_MS = 500; from loadwise.cli import main; main()"


@pytest.mark.parametrize(
    ("servers", "code", "message"),
    [("127.0.0.1:port", 2, "'127.0.0.1:port' is not HOST:PORT"), ("127.0.0.1:1", 1, "no Kafka answers at 127.0.0.1:1")],
)
def test_no_broker(servers: str, code: int, message: str) -> None:
    command = [sys.executable, "-c", IMPATIENT, "compare", "--bootstrap-servers", servers, "--group", "g"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert ran.returncode == code
    assert ran.stderr.startswith("loadwise compare: ")
    assert message in ran.stderr
