"""A member of a group whose topic goes, or is made anew, and what such a stream refuses or warns of. No JVM in it."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaConsumer
from member_group import PARTITIONS, Group, Stream
from pyspark.sql.streaming.datasource import ReadAllAvailable
from topics import delete_topic, fill, make_topic, until

from loadwise.spark_source import member_stream
from loadwise.spark_source.cluster.group_members import Changes, GroupMembers, OnceAMinute
from loadwise.spark_source.errors import DataLossError, GroupUnavailableError, MissingDependencyError, OptionError
from loadwise.spark_source.options.client_config import translate
from loadwise.spark_source.options.membership import GroupMember
from loadwise.spark_source.options.topics import Subscribe
from loadwise.spark_source.reading.arrow_batches import full_schema
from loadwise.spark_source.stream import OURS_TO_LIMIT, LoadwiseStreamReader


def delete(group):
    delete_topic(group.broker, group.topic)


def commit(group, offset):
    """As another member has done that left again."""
    other = Consumer({"bootstrap.servers": group.broker, "group.id": group.group_id})
    other.commit(offsets=[TopicPartition(group.topic, each, offset) for each in range(PARTITIONS)], asynchronous=False)
    other.close()


@pytest.fixture
def unread(coordinator, topic_name, group_id):
    """A group of our coordinator with 20 records in each partition, whose topic a test may delete."""
    coordinator.create_topic(topic_name, PARTITIONS)
    everybody = Group(coordinator.bootstrap_servers, topic_name, group_id)
    everybody.write(*[20] * PARTITIONS)
    yield everybody
    for each in everybody.ended:
        each.end()


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("size", [5, 20, 30])
def test_a_topic_made_anew_is_a_loss(group, size, restarted):
    group.write(*[20] * PARTITIONS)
    stream = group.stream()
    stream.until(lambda: group.committed() == [20] * PARTITIONS)
    if restarted:
        stream.end()
    delete(group)
    make_topic(group.broker, group.topic, PARTITIONS)
    fill(group.broker, group.topic, [size] * PARTITIONS)
    if restarted:
        stream.restart()
    with pytest.raises(
        DataLossError, match=r"-0 was deleted and created again, .* offset 20 on .*; set failOnDataLoss=fal"
    ):
        stream.until(lambda: False)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_stream_that_may_lose_data_reads_all_of_a_topic_made_anew_unseen(group, restarted, caplog):
    group.write(*[20] * PARTITIONS)
    stream = group.stream(failOnDataLoss="false")
    stream.until(lambda: group.committed() == [20] * PARTITIONS)
    if restarted:
        stream.end()
    delete(group)
    make_topic(group.broker, group.topic, PARTITIONS)
    group.write(*[30] * PARTITIONS)
    if restarted:
        stream.restart()
    before = stream.read()
    stream.until(lambda: group.committed() == [30] * PARTITIONS)
    assert stream.read() - before == Counter((each, at) for each in range(PARTITIONS) for at in range(30))
    assert caplog.text.count("was deleted and created again, and its records from offset 20 on are lost") == PARTITIONS


def test_what_others_have_committed_of_a_topic_made_anew_is_where_a_stream_goes_on(coordinator, unread, caplog):
    stream = unread.stream()
    stream.until(lambda: unread.committed() == [20] * PARTITIONS)
    stream.end()
    delete(unread)
    coordinator.create_topic(unread.topic, PARTITIONS)
    fill(unread.broker, unread.topic, [30] * PARTITIONS)
    commit(unread, 20)
    stream.restart()
    stream.until(lambda: unread.committed() == [30] * PARTITIONS)
    assert stream.read() == Counter((each, at) for each in range(PARTITIONS) for at in range(30))


def test_a_topic_made_anew_before_a_micro_batch_was_committed_is_still_a_loss_after_a_restart(coordinator, unread):
    """The coordinator takes the commit for the new topic: then it looks as if others had read that up to there."""
    stream = unread.stream()
    stream.until(lambda: stream.read().total() == 20 * PARTITIONS)
    delete(unread)
    coordinator.create_topic(unread.topic, PARTITIONS)
    fill(unread.broker, unread.topic, [30] * PARTITIONS)
    for _ in range(2):
        with pytest.raises(
            DataLossError, match=r"-0 was deleted and created again, and its records from offset 20 on are lost"
        ):
            stream.until(lambda: stream.read().total() > 20 * PARTITIONS)
        stream.end()
        stream.restart()


@pytest.fixture
def later(coordinator, unread):
    """A topic that came while the stream was stopped, of which others have read all, and the stream's reader of it."""
    options = unread.options(subscribePattern=f"^{unread.topic}")
    del options["subscribe"]
    unread.ended.append(stream := Stream(options))
    stream.until(lambda: unread.committed() == [20] * PARTITIONS)
    stream.end()
    topic = Group(unread.broker, f"{unread.topic}-2", unread.group_id)
    coordinator.create_topic(topic.topic, PARTITIONS)
    topic.write(*[20] * PARTITIONS)
    commit(topic, 20)
    stream.restart()
    stream.until(lambda: len(stream.reader._holdings.owned) == 2 * PARTITIONS)
    stream.step()
    assert topic.topic not in stream.log[-1]["positions"]  # no micro-batch had anything of it
    return topic, stream


def test_partitions_that_others_have_read_to_the_end_need_no_micro_batch(later):
    topic, stream = later
    before = stream.read()
    topic.write(*[5] * PARTITIONS)
    stream.until(lambda: topic.committed() == [25] * PARTITIONS)
    assert stream.read() - before == Counter((each, at) for each in range(PARTITIONS) for at in range(20, 25))


def test_a_topic_made_anew_is_a_loss_where_the_checkpoint_has_no_position_in_it(coordinator, later):
    topic, stream = later
    delete(topic)
    coordinator.create_topic(topic.topic, PARTITIONS)
    topic.write(*[30] * PARTITIONS)
    with pytest.raises(
        DataLossError, match=r"-2-0 was deleted and created again, and its records from offset 20 on are lost"
    ):
        stream.until(lambda: topic.committed() == [30] * PARTITIONS)


def test_a_topic_made_anew_with_fewer_partitions_is_read_where_losses_are_allowed(coordinator, unread, caplog):
    stream = unread.stream(failOnDataLoss="false")
    stream.until(lambda: unread.committed() == [20] * PARTITIONS)
    delete(unread)
    coordinator.create_topic(unread.topic, 2)
    fill(unread.broker, unread.topic, [30, 30])
    before = stream.read()
    stream.until(lambda: (stream.read() - before).total() >= 60)
    assert stream.read() - before == Counter((each, at) for each in range(2) for at in range(30))
    assert caplog.text.count("was deleted and created again, and its records from offset 20 on are lost") == PARTITIONS


def test_an_unfinished_micro_batch_of_a_member_is_not_read_from_another_topic(coordinator, unread):
    stream = unread.stream()
    while not stream.log or not stream.log[-1]["begins"]:
        stream.done = len(stream.log)
        stream.ask()
    stream.end()
    delete(unread)
    coordinator.create_topic(unread.topic, PARTITIONS)
    fill(unread.broker, unread.topic, [30] * PARTITIONS)
    with pytest.raises(
        DataLossError, match=r"-0 was deleted and created again, and its records from offset 0 on are lost"
    ):
        stream.restart()


IS_GONE = r"-0 was deleted, and its records from offset 20 on are lost; .*failOnDataLoss=false"


def test_a_deleted_topic_is_a_loss_that_names_it(unread):
    stream = unread.stream()
    stream.until(lambda: unread.committed() == [20] * PARTITIONS)
    delete(unread)
    with pytest.raises(DataLossError, match=IS_GONE):
        stream.until(lambda: False)


def test_a_deleted_topic_is_a_loss_where_the_group_has_noticed_first(unread, monkeypatch):
    stream = unread.stream()
    stream.until(lambda: unread.committed() == [20] * PARTITIONS)
    owned = stream.reader._holdings.owned
    delete(unread)
    monkeypatch.setattr(stream.reader._members, "take_part", lambda _: Changes(lost=owned, gained=frozenset()))
    with pytest.raises(DataLossError, match=IS_GONE):
        stream.step()


def test_partitions_that_the_group_takes_away_are_no_loss(unread, monkeypatch):
    stream = unread.stream()
    stream.until(lambda: unread.committed() == [20] * PARTITIONS)
    owned = stream.reader._holdings.owned
    monkeypatch.setattr(stream.reader._members, "take_part", lambda _: Changes(lost=owned, gained=frozenset()))
    stream.step()
    assert not stream.owned()


def test_a_stream_that_may_lose_data_reads_all_of_a_topic_of_the_same_name_and_tells_each_time_that_one_is_gone(
    coordinator, unread, caplog
):
    """As long as the group has not noticed, the partitions are still the stream's; the second topic has more."""
    stream = unread.stream(failOnDataLoss="false")
    stream.until(lambda: unread.committed() == [20] * PARTITIONS)
    for size, last in (25, 20), (3, 25):
        caplog.clear()
        delete(unread)
        for _ in range(3):
            stream.step()
        assert (
            caplog.text.count(f"was deleted, and its records from offset {last} on are lost; continuing") == PARTITIONS
        )
        coordinator.create_topic(unread.topic, PARTITIONS)
        unread.write(*[size] * PARTITIONS)
        before = stream.read()
        stream.until(lambda before=before, size=size: (stream.read() - before).total() >= size * PARTITIONS)
        stream.until(lambda size=size: unread.committed() == [size] * PARTITIONS)
        assert stream.read() - before == Counter((each, at) for each in range(PARTITIONS) for at in range(size))
        assert caplog.text.count("was created again; reading from its first offset, 0") == PARTITIONS


def test_kafka_python_complains_of_a_missing_topic_once_a_minute():
    passes, text = OnceAMinute().filter, "Topic clicks not found in cluster metadata"
    times = {0: True, 1: False, 59: False, 61: True, 62: False, 122: True}
    records = {at: logging.makeLogRecord({"msg": text, "created": float(at)}) for at in times}
    assert {at: passes(record) for at, record in records.items()} == times
    assert passes(logging.makeLogRecord({"msg": "another", "created": 122.0}))


def test_topics_that_a_pattern_finds_later_are_read_from_their_beginning(coordinator, topic_name, group_id):
    group = Group(coordinator.bootstrap_servers, topic_name, group_id)
    options = group.options(subscribePattern=f"^{topic_name}$", startingOffsets="latest")
    del options["subscribe"]
    group.ended.append(stream := Stream(options | {"kafka.metadata.max.age.ms": "100"}))
    try:
        stream.until(lambda: group.members() == 1)
        coordinator.create_topic(topic_name, PARTITIONS)
        group.write(*[5] * PARTITIONS)
        stream.until(lambda: set(stream.read()) == group.all_of_it())
    finally:
        stream.end()


def test_a_trigger_interval_that_comes_near_the_limit_is_warned_of_before_the_stream_joins(group, monkeypatch, caplog):
    now_s = [0.0]
    monkeypatch.setattr(member_stream, "monotonic", lambda: now_s[0])
    group.write(1)
    stream = group.stream()
    stream.step()
    now_s[0] = 160.0
    stream.step()
    warned, joined = (caplog.text.index(text) for text in ("160000 ms passed", "joining group"))
    assert warned < joined


def test_a_group_without_a_strategy_in_common_is_named(group):
    consumer = group.kafka_python(KafkaConsumer)
    until(lambda: group.members() == 1, group.members)
    stream = group.stream(assignment__strategy="weighted")
    with pytest.raises(GroupUnavailableError, match=r"option assignment\.strategy: .* without any of weighted"):
        stream.until(lambda: False)
    consumer.end()


def test_a_member_without_kafka_python_is_told_what_to_install(group, monkeypatch):
    monkeypatch.setattr(member_stream, "find_spec", lambda name: None if name == "kafka" else name)
    group.write(1)
    with pytest.raises(
        MissingDependencyError, match=r"needs kafka-python where the driver runs, .*pip install .*kafka-python"
    ):
        group.stream().until(lambda: False)


def test_triggers_that_end_are_refused(group):
    stream = group.stream()
    with pytest.raises(OptionError, match=r"assignment\.mode: member conflicts with the trigger availableNow"):
        stream.reader.prepareForTriggerAvailableNow()
    with pytest.raises(OptionError, match=r"assignment\.mode: member conflicts with the trigger once"):
        stream.reader.latestOffset(stream.initial, ReadAllAvailable())


def test_checkpoints_are_not_mixed_with_those_of_other_streams(group):
    group.write(1)
    stream = group.stream()
    with pytest.raises(OptionError, match="use a new checkpointLocation"):
        stream.reader.latestOffset({group.topic: {"0": 0}}, OURS_TO_LIMIT)
    plain = group.options() | {"assignment.mode": "plan"}
    other = LoadwiseStreamReader(plain, full_schema(include_headers=False))
    for ask in (
        lambda: other.latestOffset(stream.initial, OURS_TO_LIMIT),
        lambda: other.partitions(stream.initial, stream.initial | {"generation": 3}),
    ):
        with pytest.raises(OptionError, match="use another checkpointLocation and set startingOffsets"):
            ask()
    other.stop()


def test_certificates_that_a_member_cannot_read_are_an_error_that_names_the_file():
    java = {"bootstrap.servers": "a:1", "security.protocol": "SSL", "ssl.keystore.type": "PEM"}
    config = translate(java | {"ssl.keystore.location": "/no/such.pem"})
    group = GroupMember(group="g", members=1, strategies=("weighted",), capacity=None, settings={})
    with pytest.raises(OptionError, match=r"^option assignment\.mode: member cannot join: .*No such file"):
        GroupMembers(config, group, Subscribe(("t",)))
