"""``loadwise watch`` on groups of other people's clients: our coordinator's, and Apache Kafka's in its tier."""

from __future__ import annotations

import json
import time
import uuid
from contextlib import ExitStack, closing
from typing import Any

import pytest
from command_line import invoke
from confluent_kafka import Consumer, TopicPartition
from topics import WAIT_S, fill, give_heartbeats_time, make_topic

from loadwise.assignor.algorithms import ALGORITHMS
from loadwise.coordinator import Coordinator, ThreadedCoordinator

RECORDS = (60, 10, 10, 10)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_of_either_protocol(
    broker: str, coordinator: ThreadedCoordinator, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"watch-{uuid.uuid4().hex[:12]}"
    if protocol == "consumer" and broker != coordinator.bootstrap_servers:
        give_heartbeats_time(broker, topic)
    make_topic(broker, topic, len(RECORDS))
    fill(broker, topic, RECORDS)
    settings: dict[str, Any] = {"bootstrap.servers": broker, "group.id": topic, "group.protocol": protocol}
    settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False}
    if protocol == "classic":
        settings["heartbeat.interval.ms"] = 200
    with ExitStack() as stack:
        consumers = [Consumer({**settings, "client.id": name}) for name in ("one", "two")]
        for consumer in consumers:
            stack.enter_context(closing(consumer)).subscribe([topic])
        deadline = time.monotonic() + WAIT_S
        while sorted(len(consumer.assignment()) for consumer in consumers) != [2, 2]:
            for consumer in consumers:
                consumer.poll(0.05)
            assert time.monotonic() < deadline
        for consumer in consumers:
            # Half of the busy partition is done.
            if any(each.partition == 0 for each in consumer.assignment()):
                consumer.commit(offsets=[TopicPartition(topic, 0, 30)], asynchronous=False)
        where = ["--bootstrap-servers", broker, "--group", topic]
        result = invoke(["watch", *where, "--interval", "0.2", "--readings", "2", "--json"])
        assert result.exit_code == 0, result.output
        first, second = map(json.loads, result.stdout.splitlines())
        assert first["arrival_per_s"] is None
        assert second["lag"] == 30 + 10 + 10 + 10
        assert {member["member"] for member in second["members"]} == {"one", "two"}
        assert [member["partitions"] for member in second["members"]] == [2, 2]
        assert set(second["max_over_mean"]) == set(ALGORITHMS)
        # Two readings are further apart than the window: the rates are those between them.
        result = invoke(["watch", *where, "--interval", "0.3", "--window", "0.1", "--readings", "3", "--json"])
        rates = [json.loads(line)["arrival_per_s"] for line in result.stdout.splitlines()]
        assert rates[0] is None
        assert rates[1:] == [0.0, 0.0]
        monkeypatch.delenv("COLUMNS", raising=False)  # pytest-xdist sets it
        shown = invoke(["watch", *where, "--readings", "1"])
        assert shown.exit_code == 0, shown.output
        assert "2 members, lag 60" in shown.stdout
        monkeypatch.setenv("COLUMNS", "60")
        narrow = invoke(["watch", *where, "--readings", "1"])
        assert max(map(len, shown.stdout.splitlines())) > 60 >= max(map(len, narrow.stdout.splitlines()))
        heads = next(line for line in narrow.stdout.splitlines() if line.startswith("member ")).split()
        explained = invoke(["watch", "--help"]).stdout
        assert all(f"  {head} " in explained or f"'{head}'" in explained for head in heads)


def test_a_reading_that_fails_is_told_and_the_next_one_is_made() -> None:
    """As while the brokers restart one after the other, or all members do: a watch of days must not end of it."""
    with Coordinator({"t": 1}).in_thread() as alone:
        where = ["--bootstrap-servers", alone.bootstrap_servers, "--group", "g"]
        settings = {"bootstrap.servers": alone.bootstrap_servers, "group.id": "g", "client.id": "one"}
        with closing(Consumer(settings)) as consumer:
            consumer.subscribe(["t"])
            while not consumer.assignment():
                consumer.poll(0.05)
            alone.faults.answer("DescribeGroups", error="NOT_COORDINATOR", skip=1, times=1, client_id="loadwise-watch")
            alone.faults.disconnect("OffsetFetch", skip=2, times=1, client_id="loadwise-watch")
            result = invoke(["watch", *where, "--interval", "0.1", "--readings", "4", "--json"])
            assert not alone.faults.pending
        assert result.exit_code == 0, result.output
        assert [len(json.loads(line)["members"]) for line in result.stdout.splitlines()] == [1, 1]
        told = [line for line in result.stderr.splitlines() if line.startswith("loadwise watch: ")]
        assert len(told) == 2
        assert "error 16" in told[0]
        assert "cannot be read" in told[1]


def test_nobody_is_there(broker: str) -> None:
    result = invoke(["watch", "--bootstrap-servers", broker, "--group", f"nobody-{uuid.uuid4().hex}"])
    assert result.exit_code == 1
    assert "has no members; check the name" in result.stderr


def test_the_switch_is_shown(broker: str) -> None:
    name = f"watch-{uuid.uuid4().hex[:12]}"
    make_topic(broker, name, 2)
    where = ["--bootstrap-servers", broker, "--group", name]
    with closing(Consumer({"bootstrap.servers": broker, "group.id": name})) as consumer:
        consumer.subscribe([name])
        while not consumer.assignment():
            consumer.poll(0.05)
        assert invoke(["live", "off", *where]).exit_code == 0
        shown = invoke(["watch", *where, "--readings", "1"])
        assert "By `loadwise live`, rebalances for the load are off since" in shown.output
        as_json = invoke(["watch", *where, "--readings", "1", "--json"])
        assert json.loads(as_json.stdout)["live_off"] is True
