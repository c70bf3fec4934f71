"""A stream that is a member of a group, beside ordinary consumers: all is read, by whoever owns it. No JVM in it."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from threading import Event, Thread

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer
from pyspark.sql.streaming.datasource import ReadAllAvailable
from topics import WAIT_S, fill, make_topic

from loadwise.assignor.clients.aiokafka import aiokafka_consumer
from loadwise.assignor.clients.confluent_kafka import confluent_consumer
from loadwise.assignor.clients.kafka_python import kafka_consumer
from loadwise.spark_source.cluster import group_members
from loadwise.spark_source.cluster.group_members import GroupMembers
from loadwise.spark_source.errors import DataLossError, GroupUnavailableError, OptionError
from loadwise.spark_source.member_stream import LoadwiseMemberReader
from loadwise.spark_source.options.client_config import translate
from loadwise.spark_source.options.query import GroupMember, Subscribe
from loadwise.spark_source.reading.arrow_batches import full_schema
from loadwise.spark_source.stream import OURS_TO_LIMIT, LoadwiseStreamReader

PARTITIONS = 4


class Stream:
    """What Spark does with a reader, one step at a time: its process, and the checkpoint that outlives it."""

    def __init__(self, options):
        self.options = options
        self.log, self.done = [], 0
        self.came = {}
        """What each micro-batch brought; one that is replayed takes its own place."""
        self.over, self.thread = Event(), None
        self.restart()

    def restart(self):
        """A new process: the last one is gone with all that it knew. What it did not finish is replayed."""
        self.reader = LoadwiseMemberReader(self.options, full_schema(include_headers=False))
        self.initial = self.reader.initialOffset()
        if self.done < len(self.log):
            self.process()

    def ask(self):
        start = self.log[-1] if self.log else self.initial
        end = json.loads(json.dumps(self.reader.latestOffset(start, OURS_TO_LIMIT)))
        if end != start:
            self.log.append(end)

    def process(self):
        number = len(self.log) - 1
        start = self.log[number - 1] if number else self.initial
        tasks = self.reader.partitions(start, self.log[number])
        batches = [batch for task in tasks for batch in self.reader.read(task)]
        self.came[number] = [
            place
            for batch in batches
            for place in zip(batch["partition"].to_pylist(), batch["offset"].to_pylist(), strict=True)
        ]
        self.done = len(self.log)

    def step(self):
        self.ask()
        if self.done < len(self.log):
            self.process()

    def run(self):
        """Go on with it on a thread of its own, as Spark would."""
        self.thread = Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.over.is_set():
            self.step()
            time.sleep(0.01)  # between two triggers

    def end(self):
        self.over.set()
        if self.thread is not None:
            self.thread.join()
        self.reader.stop()

    def until(self, condition):
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, self.log[-1:]
            self.step()

    def read(self):
        return Counter(place for batch in list(self.came.values()) for place in batch)

    def owned(self):
        return {place.partition for place in self.reader._holdings.owned}


class Reading:
    """An ordinary consumer that reads on a thread of its own, and commits by itself."""

    def __init__(self, poll, close):
        self.poll, self.close = poll, close
        self.over, self.came = Event(), []
        self.thread = Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.over.is_set():
            self.came += self.poll()
        self.close()

    def end(self):
        self.over.set()
        self.thread.join()


def wait_for(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)  # between two looks


class Group:
    """Streams and consumers of one topic."""

    def __init__(self, broker, topic, group_id):
        self.broker, self.topic, self.group_id = broker, topic, group_id
        self.ended = []
        self.written = Counter()

    def write(self, *sizes):
        fill(self.broker, self.topic, sizes)
        for partition, size in enumerate(sizes):
            self.written[partition] += size

    def all_of_it(self):
        return {(partition, offset) for partition, size in self.written.items() for offset in range(size)}

    def options(self, **more):
        settings = {"bootstrap.servers": self.broker, "group.id": self.group_id, "session.timeout.ms": 6000}
        given = {"startingOffsets": "earliest", "subscribe": self.topic, "assignment.mode": "member"}
        given |= {"fetchOffset.retryIntervalMs": "1"} | {f"kafka.{name}": str(each) for name, each in settings.items()}
        return given | {name.replace("__", "."): str(value) for name, value in more.items()}

    def stream(self, **more):
        self.ended.append(Stream(self.options(**more)))
        return self.ended[-1]

    def kafka_python(self, factory=kafka_consumer, **more):
        consumer = factory(
            self.topic,
            group_id=self.group_id,
            bootstrap_servers=self.broker,
            auto_offset_reset="earliest",
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
            **more,
        )

        def poll():
            # kafka-python's own consumer gives up the commit before a rebalance when its poll ends.
            records = consumer.poll(timeout_ms=20 if factory is kafka_consumer else 1000)
            return [(record.partition, record.offset) for batch in records.values() for record in batch]

        self.ended.append(Reading(poll, consumer.close))
        return self.ended[-1]

    def confluent(self):
        settings = {"bootstrap.servers": self.broker, "group.id": self.group_id, "session.timeout.ms": 6000}
        consumer = confluent_consumer(settings | {"auto.offset.reset": "earliest"}, assignor=["weighted", "range"])
        consumer.subscribe([self.topic])

        def poll():
            messages = consumer.consume(100, 0.02)
            return [(each.partition(), each.offset()) for each in messages if each.error() is None]

        self.ended.append(Reading(poll, consumer.close))
        return self.ended[-1]

    def aiokafka(self):
        loop = asyncio.new_event_loop()

        async def begun():
            consumer = aiokafka_consumer(
                self.topic,
                group_id=self.group_id,
                bootstrap_servers=self.broker,
                auto_offset_reset="earliest",
                session_timeout_ms=6000,
                capacity=1.0,
            )
            await consumer.start()
            return consumer

        consumers = []

        def poll():
            if not consumers:
                consumers.append(loop.run_until_complete(begun()))
            records = loop.run_until_complete(consumers[0].getmany(timeout_ms=20))
            return [(record.partition, record.offset) for batch in records.values() for record in batch]

        def close():
            loop.run_until_complete(consumers[0].stop())
            loop.close()

        self.ended.append(Reading(poll, close))
        return self.ended[-1]

    def committed(self):
        consumer = Consumer({"bootstrap.servers": self.broker, "group.id": self.group_id})
        asked = [TopicPartition(self.topic, partition) for partition in range(PARTITIONS)]
        found = [each.offset for each in consumer.committed(asked, timeout=WAIT_S)]
        consumer.close()
        return found

    def members(self):
        admin = AdminClient({"bootstrap.servers": self.broker})
        return len(admin.describe_consumer_groups([self.group_id])[self.group_id].result(WAIT_S).members)


def delete(group):
    admin = AdminClient({"bootstrap.servers": group.broker})
    admin.delete_topics([group.topic])[group.topic].result(WAIT_S)


@pytest.fixture
def group(broker, topic_name, group_id):
    make_topic(broker, topic_name, PARTITIONS)
    everybody = Group(broker, topic_name, group_id)
    yield everybody
    for each in everybody.ended:
        each.end()


def test_a_stream_and_a_consumer_share_a_topic_and_the_stream_takes_over(group):
    """Both are told what they can process: on a busy machine one would learn to be slower than the other."""
    group.write(*[40] * PARTITIONS)
    stream = group.stream(assignment__capacity="1")
    stream.until(lambda: set(stream.read()) == group.all_of_it())
    consumer = group.kafka_python(capacity=1.0)
    stream.until(lambda: len(stream.owned()) == PARTITIONS / 2)
    group.write(*[10] * PARTITIONS)
    stream.until(lambda: set(stream.read()) | set(consumer.came) == group.all_of_it())
    assert {partition for partition, _ in consumer.came} == set(range(PARTITIONS)) - stream.owned()
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
    consumers = [group.kafka_python(KafkaConsumer, enable_auto_commit=True), group.confluent()]

    def came():
        found = sum((stream.read() for stream in streams), Counter())
        for consumer in consumers:
            found.update(list(consumer.came))
        return found

    wait_for(lambda: all(len(stream.owned()) == 1 for stream in streams))
    group.write(*[100] * PARTITIONS)
    wait_for(lambda: set(came()) == group.all_of_it())
    # What Spark has not given back when it stops a stream is read again by others.
    (last,) = streams[0].owned()
    wait_for(lambda: group.committed()[last] == 200)
    for leaves in (streams[0], *consumers):
        leaves.end()
    group.write(*[100] * PARTITIONS)
    wait_for(lambda: set(came()) == group.all_of_it())
    assert [place for place, times in came().items() if times > 1] == []
    wait_for(lambda: group.committed() == [group.written[partition] for partition in range(PARTITIONS)])


def test_a_stream_and_an_aiokafka_consumer_share_a_topic_and_each_takes_over_where_the_other_stops(group):
    group.write(*[40] * PARTITIONS)
    consumer = group.aiokafka()
    wait_for(lambda: len(consumer.came) == 40 * PARTITIONS)
    stream = group.stream(assignment__capacity="1")
    stream.until(lambda: len(stream.owned()) == PARTITIONS / 2)
    group.write(*[10] * PARTITIONS)
    stream.until(lambda: set(stream.read()) | set(consumer.came) == group.all_of_it())
    assert {partition for partition, offset in consumer.came if offset >= 40} == set(range(PARTITIONS)) - stream.owned()
    consumer.end()
    stream.until(lambda: len(stream.owned()) == PARTITIONS)
    group.write(*[10] * PARTITIONS)
    stream.until(lambda: set(stream.read()) | set(consumer.came) == group.all_of_it())
    assert stream.read() + Counter(consumer.came) == Counter(group.all_of_it())
    stream.until(lambda: group.committed() == [60] * PARTITIONS)


def test_several_members_of_one_stream_read_all_of_it_and_leave(group):
    group.write(*[20] * PARTITIONS)
    stream = group.stream(assignment__members="3", assignment__capacity="3")
    stream.until(lambda: set(stream.read()) == group.all_of_it())
    assert group.members() == 3
    consumer = group.kafka_python(capacity=1.0)
    stream.until(lambda: len(stream.owned()) == PARTITIONS - 1)
    assert group.members() == 4
    stream.end()
    wait_for(lambda: group.members() == 1)
    group.write(*[20] * PARTITIONS)
    wait_for(lambda: set(stream.read()) | set(consumer.came) == group.all_of_it())
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


def test_who_is_put_out_in_a_micro_batch_commits_none_of_it(group):
    """Its batch outlasts ``max.poll.interval.ms``; another member reads from the group's commit, and that wins."""
    group.write(*[20] * PARTITIONS)
    short = {"kafka__max__poll__interval__ms": 1000, "kafka__heartbeat__interval__ms": 200}
    stream = group.stream(assignment__capacity="1", **short)
    stream.until(lambda: group.committed() == [20] * PARTITIONS)
    group.write(*[10] * PARTITIONS)
    stream.ask()
    consumer = group.kafka_python(capacity=1.0)
    wait_for(lambda: len(consumer.came) == 10 * PARTITIONS)  # all of the batch in flight comes here, too
    stream.process()
    wait_for(lambda: group.committed() == [30] * PARTITIONS)
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


def test_a_topic_made_anew_is_a_loss(coordinator, topic_name, group_id):
    coordinator.create_topic(topic_name, PARTITIONS)
    group = Group(coordinator.bootstrap_servers, topic_name, group_id)
    group.write(*[20] * PARTITIONS)
    stream = group.stream()
    try:
        stream.until(lambda: group.committed() == [20] * PARTITIONS)
        delete(group)
        coordinator.create_topic(topic_name, PARTITIONS)
        fill(group.broker, topic_name, [5] * PARTITIONS)
        with pytest.raises(DataLossError, match="deleted and made anew; set failOnDataLoss=false"):
            stream.until(lambda: False)
    finally:
        stream.end()


def test_a_deleted_topic_is_a_loss_that_names_it(coordinator, topic_name, group_id):
    coordinator.create_topic(topic_name, PARTITIONS)
    group = Group(coordinator.bootstrap_servers, topic_name, group_id)
    group.write(*[20] * PARTITIONS)
    stream = group.stream()
    try:
        stream.until(lambda: group.committed() == [20] * PARTITIONS)
        delete(group)
        with pytest.raises(
            DataLossError, match=r"-0 is gone, with what it held from offset 20 on; .*failOnDataLoss=false"
        ):
            stream.until(lambda: False)
    finally:
        stream.end()


def test_a_stream_that_may_lose_data_goes_on_without_a_deleted_topic_and_with_one_of_its_name(
    coordinator, topic_name, group_id, caplog
):
    """As long as the group has not noticed, the partitions are still the stream's."""
    coordinator.create_topic(topic_name, PARTITIONS)
    group = Group(coordinator.bootstrap_servers, topic_name, group_id)
    group.write(*[20] * PARTITIONS)
    stream = group.stream(failOnDataLoss="false")
    try:
        stream.until(lambda: group.committed() == [20] * PARTITIONS)
        delete(group)
        for _ in range(3):
            stream.step()
        assert caplog.text.count("is gone, with what it held from offset 20 on; going on") == PARTITIONS
        coordinator.create_topic(topic_name, PARTITIONS)
        stream.until(lambda: caplog.text.count("deleted and made anew; going on") == PARTITIONS)
        before = stream.read()
        group.write(*[5] * PARTITIONS)
        stream.until(lambda: (stream.read() - before).total() == 5 * PARTITIONS)
    finally:
        stream.end()


def test_a_group_without_a_strategy_in_common_is_named(group):
    consumer = group.kafka_python(KafkaConsumer)
    wait_for(lambda: group.members() == 1)
    stream = group.stream(assignment__strategy="weighted")
    with pytest.raises(GroupUnavailableError, match=r"option assignment\.strategy: .* none of weighted"):
        stream.until(lambda: False)
    consumer.end()


def test_triggers_that_end_are_refused(group):
    stream = group.stream()
    with pytest.raises(OptionError, match=r"assignment\.mode: member goes against the trigger availableNow"):
        stream.reader.prepareForTriggerAvailableNow()
    with pytest.raises(OptionError, match=r"assignment\.mode: member goes against the trigger once"):
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
        with pytest.raises(OptionError, match="use another checkpointLocation"):
            ask()
    other.stop()


def test_certificates_that_a_member_cannot_read_are_an_error_that_names_the_file():
    java = {"bootstrap.servers": "a:1", "security.protocol": "SSL", "ssl.keystore.type": "PEM"}
    config = translate(java | {"ssl.keystore.location": "/no/such.pem"})
    group = GroupMember(group="g", members=1, strategies=("weighted",), capacity=None, settings={})
    with pytest.raises(OptionError, match=r"^option assignment\.mode: member cannot join: .*No such file"):
        GroupMembers(config, group, Subscribe(("t",)))
