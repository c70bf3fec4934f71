"""A stream that is a member of a group, beside ordinary consumers: all is read, by whoever owns it. No JVM in it."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaConsumer
from member_group import PARTITIONS, Stream
from topics import until

from loadwise.spark_source.cluster import group_members


@pytest.mark.kafka
def test_a_stream_and_a_consumer_share_a_topic_and_the_stream_takes_over(group):
    """Both are told what they can process: on a busy machine one would learn to be slower than the other."""
    group.write(*[40] * PARTITIONS)
    stream = group.stream(assignment__capacity="1")
    stream.until(lambda: set(stream.read()) == group.all_of_it())
    consumer = group.kafka_python(capacity=1.0)
    stream.until(lambda: len(stream.owned()) == PARTITIONS / 2)
    group.write(*[10] * PARTITIONS)
    stream.until(lambda: set(stream.read()) | set(consumer.came) == group.all_of_it())
    assert consumer.came
    consumer.end()
    stream.until(lambda: len(stream.owned()) == PARTITIONS)
    group.write(*[10] * PARTITIONS)
    stream.until(lambda: set(stream.read()) | set(consumer.came) == group.all_of_it())
    assert stream.read() + Counter(consumer.came) == Counter(group.all_of_it())


def test_streams_and_consumers_of_three_clients_share_a_topic(group):
    """Who comes takes over where the others have committed, and who leaves has committed what it read."""
    group.write(*[100] * PARTITIONS)
    streams = [group.stream(assignment__strategy="weighted,range") for _ in range(2)]
    for stream in streams:
        stream.run()
    until(lambda: group.committed() == [100] * PARTITIONS, group.committed)
    consumers = [group.kafka_python(KafkaConsumer, auto_commit_interval_ms=100), group.confluent()]

    def came():
        found = sum((stream.read() for stream in streams), Counter())
        for consumer in consumers:
            found.update(list(consumer.came))
        return found

    # Of three members, too, each stream may have one partition.
    until(
        lambda: group.shares() == [1] * PARTITIONS and all(len(stream.owned()) == 1 for stream in streams),
        lambda: (group.shares(), [each.owned() for each in streams]),
    )
    group.write(*[100] * PARTITIONS)
    until(lambda: set(came()) == group.all_of_it(), came)
    # What Spark has not given back when it stops a stream is read again by others. So is what kafka-python's own
    # consumer has not committed when it notices a rebalance near the end of its poll: then it gives the commit up.
    (last,) = streams[0].owned()
    (stock,) = {partition for partition, _ in consumers[0].came}
    until(lambda: group.committed()[last] == group.committed()[stock] == 200, group.committed)
    for leaves in (streams[0], *consumers):
        leaves.end()
    group.write(*[100] * PARTITIONS)
    until(lambda: set(came()) == group.all_of_it(), came)
    twice = {place for place, times in came().items() if times > 1}
    by_whom = [sorted(twice & set(found)) for found in (*map(Stream.read, streams), *(each.came for each in consumers))]
    assert not twice, by_whom
    until(lambda: group.committed() == [group.written[partition] for partition in range(PARTITIONS)], group.committed)


@pytest.mark.kafka
def test_a_stream_and_an_aiokafka_consumer_share_a_topic_and_each_takes_over_where_the_other_stops(group):
    group.write(*[40] * PARTITIONS)
    consumer = group.aiokafka()
    until(lambda: len(consumer.came) == 40 * PARTITIONS, lambda: consumer.came)
    stream = group.stream(assignment__capacity="1")
    stream.until(lambda: len(stream.owned()) == PARTITIONS / 2)
    group.write(*[10] * PARTITIONS)
    stream.until(lambda: set(stream.read()) | set(consumer.came) == group.all_of_it())
    assert {offset >= 40 for _, offset in consumer.came} == {False, True}
    consumer.end()
    stream.until(lambda: len(stream.owned()) == PARTITIONS)
    group.write(*[10] * PARTITIONS)
    stream.until(lambda: set(stream.read()) | set(consumer.came) == group.all_of_it())
    assert stream.read() + Counter(consumer.came) == Counter(group.all_of_it())
    stream.until(lambda: group.committed() == [60] * PARTITIONS)


@pytest.mark.kafka
def test_several_members_of_one_stream_read_all_of_it_and_leave(group):
    group.write(*[20] * PARTITIONS)
    stream = group.stream(assignment__members="3", assignment__capacity="3")
    stream.until(lambda: set(stream.read()) == group.all_of_it())
    assert group.members() == 3
    consumer = group.kafka_python(capacity=1.0)
    stream.until(lambda: len(stream.owned()) == PARTITIONS - 1)
    assert group.members() == 4
    stream.end()
    until(lambda: group.members() == 1, group.members)
    group.write(*[20] * PARTITIONS)
    until(lambda: set(stream.read()) | set(consumer.came) == group.all_of_it(), stream.read)
    assert max((stream.read() + Counter(consumer.came)).values()) == 1


def test_weighted_gives_a_stream_its_share(group):
    """What waits is spread evenly, and the stream can do three times as much: its two members share that."""
    group.write(*[50] * PARTITIONS)
    stream = group.stream(assignment__capacity="3", assignment__members="2")
    group.kafka_python(capacity=1.0)
    stream.until(lambda: len(stream.owned()) == PARTITIONS - 1 and group.members() == 3)


@pytest.mark.parametrize("members", [1, 2])
def test_a_stream_learns_what_it_can_process_from_its_micro_batches(group, monkeypatch, members):
    """Each takes a millisecond a record, whatever Kafka takes between them; its members share what it can do."""
    now_ns = [0]
    monkeypatch.setattr(group_members, "monotonic_ns", lambda: now_ns[0])
    group.write(*[400] * PARTITIONS)
    stream = group.stream(maxOffsetsPerTrigger=100, assignment__members=members)
    while len(stream.read()) < 1200:
        stream.ask()
        size = -stream.read().total()
        if stream.done < len(stream.log):
            stream.process()
            size += stream.read().total()
            now_ns[0] += size * 1_000_000
    learned = [member.membership.busy.per_s for member in stream.reader._members._members]
    assert sum(learned) == pytest.approx(1000, rel=0.05)


def test_a_replay_needs_no_group_and_a_restart_goes_on_where_it_was(group):
    group.write(*[20] * PARTITIONS)
    stream = group.stream()
    stream.ask()  # where partitions begin
    stream.process()
    stream.until(lambda: len(stream.log) == 2)
    group.write(*[5] * PARTITIONS)
    stream.ask()
    stream.reader.stop()
    stream.restart()  # with a micro-batch in the log that was never processed
    assert stream.reader._members is None
    assert set(stream.read()) == group.all_of_it()
    stream.until(lambda: group.committed() == [25] * PARTITIONS)
    assert stream.read() == Counter(group.all_of_it())


@pytest.mark.kafka  # TestGroups loses members in the default tier
def test_who_is_put_out_in_a_micro_batch_commits_none_of_it(group):
    """Its batch outlasts ``max.poll.interval.ms``; another member reads from the group's commit, and that wins."""
    group.write(*[20] * PARTITIONS)
    stream = group.stream(assignment__capacity="1")
    stream.until(lambda: group.committed() == [20] * PARTITIONS)
    group.write(*[10] * PARTITIONS)
    stream.ask()
    (member,) = stream.reader._members._members
    heartbeat = member.membership._coordinator.heartbeat
    patience_ms, heartbeat.config["max_poll_interval_ms"] = heartbeat.config["max_poll_interval_ms"], 0
    consumer = group.kafka_python(capacity=1.0)
    # All of the batch in flight comes here, too.
    until(lambda: len(consumer.came) == 10 * PARTITIONS, lambda: consumer.came)
    heartbeat.config["max_poll_interval_ms"] = patience_ms
    stream.process()
    until(lambda: group.committed() == [30] * PARTITIONS, group.committed)
    group.write(*[10] * PARTITIONS)
    stream.until(lambda: set(stream.read()) | set(consumer.came) == group.all_of_it() and len(stream.owned()) == 2)
    came = stream.read() + Counter(consumer.came)
    twice = {place for place, times in came.items() if times > 1}
    assert twice <= {(partition, offset) for partition in range(PARTITIONS) for offset in range(20, 30)}
    assert max(came.values()) <= 2


@pytest.mark.parametrize("offset", [3, 15])
def test_the_groups_commit_wins_over_the_checkpoint(group, offset):
    group.write(*[20] * PARTITIONS)
    stream = group.stream(maxOffsetsPerTrigger=10 * PARTITIONS)
    stream.until(lambda: group.committed() == [10] * PARTITIONS)
    stream.reader.stop()
    mover = Consumer({"bootstrap.servers": group.broker, "group.id": group.group_id})
    mover.commit(offsets=[TopicPartition(group.topic, 0, offset)], asynchronous=False)
    mover.close()
    stream.restart()
    before = Counter(stream.read())
    stream.until(lambda: group.committed() == [20] * PARTITIONS)
    again = Counter(at for (partition, at), n in (stream.read() - before).items() if partition == 0 for _ in range(n))
    assert again == Counter(range(max(offset, 0), 20))
