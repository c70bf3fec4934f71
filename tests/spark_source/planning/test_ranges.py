"""What there is to read, as a live broker says; no Spark in it."""

from __future__ import annotations

import json
from time import monotonic

import confluent_kafka
import pytest
from confluent_kafka import Producer
from own_log import own_log
from resolved_ranges import resolved
from topics import WAIT_S

from loadwise.coordinator import Coordinator
from loadwise.spark_source.cluster import offsets as cluster_offsets
from loadwise.spark_source.cluster.client import Client
from loadwise.spark_source.errors import DataLossError, OffsetsUnavailableError, OptionError
from loadwise.spark_source.options.query import parse


def ranges(topic, **options):
    return [(item.partition, item.start, item.end) for item in resolved(parse(topic.options(**options)))]


def offsets(topic, *numbers):
    return json.dumps({topic.name: {str(partition): number for partition, number in enumerate(numbers)}})


def test_earliest_to_latest_by_default_and_empty_partitions_too(topic):
    assert ranges(topic([3, 0, 5])) == [(0, 0, 3), (1, 0, 0), (2, 0, 5)]


def test_offsets_by_partition_with_earliest_and_latest_in_between(topic):
    topic = topic([10, 10])
    found = ranges(topic, startingOffsets=offsets(topic, 3, -2), endingOffsets=offsets(topic, -1, 7))
    assert found == [(0, 3, 10), (1, 0, 7)]


def test_moments(topic):
    topic = topic([0, 0])
    producer = Producer({"bootstrap.servers": topic.bootstrap_servers})
    for second in (10, 20, 30):
        producer.produce(topic.name, b"v", partition=0, timestamp=second * 1000)
    producer.produce(topic.name, b"v", partition=1, timestamp=15_000)
    assert producer.flush(WAIT_S) == 0
    assert ranges(topic, startingTimestamp=15_000) == [(0, 1, 3), (1, 0, 1)]
    assert ranges(topic, endingTimestamp=20_000) == [(0, 0, 1), (1, 0, 1)]  # none so young: up to the end
    by_partition = offsets(topic, 20_001, 0)
    assert ranges(topic, startingOffsetsByTimestamp=by_partition) == [(0, 2, 3), (1, 0, 1)]
    with pytest.raises(OptionError, match=f"^option startingTimestamp: {topic.name}-1 has no record .* 16000 ms"):
        ranges(topic, startingTimestamp=16_000)
    late = {"startingTimestamp": 16_000, "startingOffsetsByTimestampStrategy": "latest"}
    assert ranges(topic, **late) == [(0, 1, 3), (1, 1, 1)]


def test_a_pattern_is_looked_for_anywhere_in_names_but_kafkas_own_topics():
    """As ``SubscribePatternStrategy`` does, with ``findFirstIn``."""
    with Coordinator({"ab": 2, "b": 2, "xbc": 1, "xb": 1, "__consumer_offsets": 1}).in_thread() as coordinator:
        options = {"kafka.bootstrap.servers": coordinator.bootstrap_servers, "subscribePattern": "^a?b|bc|__"}
        found = [(item.topic, item.partition) for item in resolved(parse(options))]
    assert found == [("ab", 0), ("ab", 1), ("b", 0), ("b", 1), ("xbc", 0)]


def test_assigned_partitions_and_no_others(topic):
    topic = topic([1, 2, 3])
    options = {"kafka.bootstrap.servers": topic.bootstrap_servers}
    found = resolved(parse(options | {"assign": json.dumps({topic.name: [2, 0]})}))
    assert [(item.partition, item.end) for item in found] == [(0, 1), (2, 3)]
    with pytest.raises(OptionError, match=f"^option assign: {topic.name}-3 does not exist: the topic has 3 partitions"):
        resolved(parse(options | {"assign": json.dumps({topic.name: [0, 3]})}))


def test_offsets_must_be_given_for_every_partition_and_for_no_other(topic):
    topic = topic([1, 1])
    with pytest.raises(OptionError, match=f"^option startingOffsets: has no entry for {topic.name}-1;"):
        ranges(topic, startingOffsets=offsets(topic, 0))
    with pytest.raises(OptionError, match=f"^option endingOffsets: names {topic.name}-2, which .* not read"):
        ranges(topic, endingOffsets=offsets(topic, 1, 1, 1))


def test_offsets_that_are_not_there(topic, caplog):
    """Of [0, 4), [2, 9) is asked for; and behind the end, [7, 4)."""
    topic = topic([4])
    with pytest.raises(DataLossError, match=r"-0\[2, 9\) is incomplete: .* holds \[0, 4\); .* failOnDataLoss"):
        ranges(topic, startingOffsets=offsets(topic, 2), endingOffsets=offsets(topic, 9))
    with pytest.raises(DataLossError, match=r"-0\[7, 4\) starts \(startingOffsets\) after its end \(endingOffsets\)"):
        ranges(topic, startingOffsets=offsets(topic, 7))
    caplog.clear()
    tolerant = {"failOnDataLoss": "false"}
    assert ranges(topic, **tolerant, startingOffsets=offsets(topic, 2), endingOffsets=offsets(topic, 9)) == [(0, 2, 4)]
    assert ranges(topic, **tolerant, startingOffsets=offsets(topic, 7)) == [(0, 7, 7)]
    assert [record.levelname for record in own_log(caplog)] == ["WARNING", "WARNING"]


def test_a_topic_that_is_not_there_is_named_and_not_made(coordinator, topic_name):
    options = parse({"kafka.bootstrap.servers": coordinator.bootstrap_servers, "subscribe": topic_name})
    for _ in range(2):
        with pytest.raises(OffsetsUnavailableError, match=f"^cannot look up topic {topic_name}: .*[Uu]nknown topic"):
            resolved(options)


# Some machines look for a name for as long as their resolver waits for an answer.
@pytest.mark.parametrize(
    "address", ["127.0.0.1:1", pytest.param("there-is-no-such-host.invalid:9092", marks=pytest.mark.kafka)]
)
def test_an_address_without_a_broker_is_not_tried_for_the_whole_minute(topic_name, monkeypatch, address):
    """And what is there at times, is: see the tests of streams."""
    monkeypatch.setattr(cluster_offsets, "PATIENCE_S", 0.3)
    monkeypatch.setattr(cluster_offsets, "UNREACHABLE_S", 0.5)
    options = {"kafka.bootstrap.servers": address, "kafka.default.api.timeout.ms": "600000", "subscribe": topic_name}
    with pytest.raises(OffsetsUnavailableError, match=f"{address}.*kafka.bootstrap.servers"):
        resolved(parse(options))


def test_topics_are_asked_for_in_one_question_and_the_missing_one_is_named(coordinator, topic_name):
    names = [f"{topic_name}-{number}" for number in range(5)]
    for count, name in enumerate(names, 1):
        coordinator.create_topic(name, count)
    options = {"kafka.bootstrap.servers": coordinator.bootstrap_servers}
    assert len(resolved(parse(options | {"subscribe": ",".join(names)}))) == 15
    with pytest.raises(OffsetsUnavailableError, match=f"^cannot look up topic {topic_name}: .*[Uu]nknown topic"):
        resolved(parse(options | {"subscribe": ",".join([*names, topic_name])}))


def test_brokers_that_do_not_answer_are_named(topic_name, nowhere, monkeypatch):
    note, noted, began_s = Client.note, [], monotonic()
    monkeypatch.setattr(Client, "note", lambda client, error: noted.append(note(client, error)))
    # No time passes until librdkafka has found nobody there, however slow the machine is.
    monkeypatch.setattr(cluster_offsets, "monotonic", lambda: monotonic() if noted else began_s)
    options = {"kafka.bootstrap.servers": nowhere, "kafka.default.api.timeout.ms": "300", "subscribe": topic_name}
    with pytest.raises(OffsetsUnavailableError) as refused:
        resolved(parse(options))
    assert nowhere in str(refused.value)
    assert "kafka.default.api.timeout.ms" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_deadline_that_passes_between_two_questions_is_no_endless_wait(topic_name, nowhere, monkeypatch):
    """librdkafka waits for ever where it is given a time below 0. By a clock of its own: only sleeping takes time."""
    waits, now_s = [], [0.0]

    class Noting(confluent_kafka.Consumer):
        def list_topics(self, *topics, timeout):
            waits.append(timeout)
            return super().list_topics(*topics, timeout=0.0)  # nobody is there: the answer comes at once

    monkeypatch.setattr(confluent_kafka, "Consumer", Noting)
    monkeypatch.setattr(cluster_offsets, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(cluster_offsets, "sleep", lambda seconds: now_s.append(now_s.pop() + seconds + 0.05))
    options = {"kafka.bootstrap.servers": nowhere, "kafka.default.api.timeout.ms": "300", "subscribe": topic_name}
    options |= {"fetchOffset.numRetries": "1", "fetchOffset.retryIntervalMs": "0"}
    with pytest.raises(OffsetsUnavailableError):
        resolved(parse(options))
    assert len(waits) > 2
    assert min(waits) > 0
    assert waits[0] == 0.3, "a question is not given Kafka's own minute"
