"""A Spark stream that is a member of a group, step by step and without a JVM, and ordinary consumers beside it."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from threading import Event, Thread

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from topics import WAIT_S, fill

from loadwise import aiokafka_consumer, confluent_consumer, kafka_python_consumer
from loadwise.spark_source.member_stream import LoadwiseMemberReader
from loadwise.spark_source.reading.arrow_batches import full_schema
from loadwise.spark_source.stream import OURS_TO_LIMIT

PARTITIONS = 4
HEARTBEAT_MS = 200
SESSION_MS = 60_000
"""Longer than a machine stalls: who is put out of the group by chance commits nothing, and its records come twice."""


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
        settings = {"bootstrap.servers": self.broker, "group.id": self.group_id, "session.timeout.ms": SESSION_MS}
        settings["heartbeat.interval.ms"] = HEARTBEAT_MS
        given = {"startingOffsets": "earliest", "subscribe": self.topic, "assignment.mode": "member"}
        given |= {"fetchOffset.retryIntervalMs": "1"} | {f"kafka.{name}": str(each) for name, each in settings.items()}
        return given | {name.replace("__", "."): str(value) for name, value in more.items()}

    def stream(self, **more):
        self.ended.append(Stream(self.options(**more)))
        return self.ended[-1]

    def kafka_python(self, factory=kafka_python_consumer, **more):
        consumer = factory(
            self.topic,
            group_id=self.group_id,
            bootstrap_servers=self.broker,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            **more,
        )

        def poll():
            # kafka-python's own consumer gives up the commit before a rebalance when its poll ends, so polls are long.
            records = consumer.poll(timeout_ms=20 if factory is kafka_python_consumer else 1000)
            return [(record.partition, record.offset) for batch in records.values() for record in batch]

        self.ended.append(Reading(poll, consumer.close))
        return self.ended[-1]

    def confluent(self):
        settings = {"bootstrap.servers": self.broker, "group.id": self.group_id, "session.timeout.ms": SESSION_MS}
        settings["heartbeat.interval.ms"] = HEARTBEAT_MS
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
                session_timeout_ms=SESSION_MS,
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
        return len(self.shares())

    def shares(self):
        """How many partitions each member has."""
        admin = AdminClient({"bootstrap.servers": self.broker})
        described = admin.describe_consumer_groups([self.group_id])[self.group_id].result(WAIT_S)
        return [len(member.assignment.topic_partitions) for member in described.members]
