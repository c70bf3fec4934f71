"""A member of a group as a process of its own: a real consumer that can process so many records a second.

It writes a line of JSON whenever something changed: its generation, what it owns, and which offsets of each partition
it has processed. It ends when its standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import queue
import signal
import sys
import threading
import time

from offsets import Offsets

from loadwise import LiveSettings
from loadwise.demo.pace import TokenBucket

REPORT_S = 0.2
JUMP_S = 8.0
LATE_S = 1.0
"""So much of what work took too long is made up for."""
COST, COSTLY = 10, b"c"
"""What a record costs whose value begins like this; all others cost 1."""


class Report:
    """The lines that the test reads."""

    def __init__(self, args):
        self.done: dict[int, Offsets] = {}
        self.last = ("", 0.0)
        # A member that is killed must have written what it has committed. Those that poll for each record, or commit
        # themselves, are not killed, and would write hundreds of lines a second.
        self._every_s = REPORT_S if args.shape in ("record-by-record", POOL) else 0.0
        self._topic, self._costly_after = args.topic, args.costly_after

    def number(self, partition):
        """Partitions of the costly topic are numbered after those of the other one."""
        return partition.partition + (self._costly_after if partition.topic != self._topic else 0)

    def send(self, consumer, generation):
        """Write a line, if there is something new."""
        line = json.dumps(
            {
                "generation": generation,
                "owned": sorted(map(self.number, consumer.assignment())),
                "done": {number: [done.ranges, done.repeated] for number, done in self.done.items()},
                "leads": consumer.rebalances.leads,
                "fallbacks": consumer.rebalances.fallbacks,
            }
        )
        if line != self.last[0] and time.monotonic() - self.last[1] >= self._every_s:
            self.last = line, time.monotonic()
            print(line, flush=True)

    def processed(self, batches):
        """Count records; what they cost, where a costly one costs as much as ten others."""
        cost = 0
        for partition, records in batches.items():
            number = self.number(partition)
            done = self.done.setdefault(number, Offsets())
            for offset in map(offset_of, records):
                done.add(offset, offset + 1)
            costly = sum(map(is_costly, records)) if self._costly_after else 0
            cost += len(records) + costly * (COST - 1)
        return cost


def offset_of(record):
    """A record's offset, of any client; Spark's records are offsets here."""
    offset = getattr(record, "offset", record)
    return offset() if callable(offset) else offset  # confluent-kafka's is a method


def is_costly(record):
    value = record.value() if callable(record.value) else record.value  # confluent-kafka's is a method
    return value.startswith(COSTLY)


class Work:
    """Work that takes its time, however busy the machine is; the program sleeps for what a poll has given."""

    most, wait_s = 100, 0.0
    """Records that a poll may give, and how long the program waits before it."""

    def __init__(self, args):
        self._speed, self._done_at, self._late_s = args.speed, 0.0, 0.0
        self.hangs = False
        signal.signal(signal.SIGUSR2, self._hang)
        # Made up for in other pieces, costly records would look dearer than they are, and cheap ones cheaper.
        self._makes_up = not args.costly_after

    def _hang(self, *_):
        self.hangs = not self.hangs

    def add(self, cost):
        takes_s = cost / self._speed
        made_up_s = min(self._late_s, takes_s / 2) if self._makes_up else 0.0
        self._late_s -= made_up_s
        self._done_at = time.monotonic() + takes_s - made_up_s

    def end(self):
        """What a piece took too long, because the machine is busy, is taken off the next ones, up to half of each.

        No more than that: no program takes no time for records.
        """
        self._late_s = min(self._late_s + max(time.monotonic() - self._done_at, 0.0), LATE_S)

    @property
    def left_s(self):
        return max(self._done_at - time.monotonic(), 0.0)


class RecordByRecord(Work):
    """It asks for each record."""

    most = 1


class RateLimit(Work):
    """It waits for tokens before it polls, and processes what the poll gives at once."""

    def __init__(self, args):
        super().__init__(args)
        self._bucket = TokenBucket(self._speed, burst=self._speed * 0.1, now_s=time.monotonic())
        self._wanted = max(1, int(self._speed * 0.025))

    @property
    def wait_s(self):
        missing = self._bucket.available(time.monotonic()) < self._wanted
        return self._bucket.wait_s(self._wanted) if missing else 0.0

    @property
    def most(self):
        return max(1, self._bucket.available(time.monotonic()))

    def add(self, cost):
        self._bucket.take(cost)


class Batch(Work):
    """It collects 300 records, or those of a second, and then writes them."""

    def __init__(self, args):
        super().__init__(args)
        self._collected, self._since = 0, time.monotonic()

    def add(self, cost):
        self._collected += cost
        if self._collected >= 300 or time.monotonic() - self._since >= 1.0:
            super().add(self._collected)
            self._collected, self._since = 0, time.monotonic() + self.left_s

    def end(self):
        if not self._collected:
            super().end()


class Tasks(Work):
    """It starts a task for each record, 50 of them at a time at most; of an aiokafka member only."""

    def __init__(self, args):
        super().__init__(args)
        self._free = asyncio.Semaphore(50)
        self._tasks = set()

    async def start(self, cost):
        for _ in range(cost):
            await self._free.acquire()
            task = asyncio.create_task(asyncio.sleep(50 / self._speed))
            self._tasks.add(task)
            task.add_done_callback(lambda task: (self._tasks.discard(task), self._free.release()))


SHAPES = {"in-line": Work, "record-by-record": RecordByRecord, "rate-limit": RateLimit, "batch": Batch, "tasks": Tasks}
POOL = "pool"


def topics(args):
    return [args.topic, f"{args.topic}-costly"] if args.costly_after else [args.topic]


def options(args):
    config = {
        "group_id": args.group,
        "bootstrap_servers": args.servers,
        "client_id": args.name,
        "assignor": args.assignor,
        "auto_offset_reset": "earliest",
        "max_poll_records": 100,
        "session_timeout_ms": 10_000,
        "heartbeat_interval_ms": 500,
        **json.loads(args.more),
    }
    if "live" in config:
        config["live"] = LiveSettings(**config["live"])
    if args.instance:
        config["group_instance_id"] = args.instance
    return config


class Unreadable:
    """Whether readings of offsets end with an error; SIGUSR1 changes it."""

    def __init__(self, args, errors):
        self._now = bool(args.unreadable)
        self._error = getattr(errors, args.unreadable or "KafkaConnectionError")
        signal.signal(signal.SIGUSR1, self._change)

    def _change(self, *_):
        self._now = not self._now

    def check(self):
        if self._now:
            raise self._error


def kafka_python(args, ended):
    import kafka.errors

    from loadwise import kafka_python_consumer
    from loadwise.assignor.clients.kafka_python import lag as kafka_python_lag

    unreadable, read = Unreadable(args, kafka.errors), kafka_python_lag.KafkaPythonLag._read_once
    kafka_python_lag.KafkaPythonLag._read_once = lambda lag: unreadable.check() or read(lag)
    consumer = kafka_python_consumer(*topics(args), **options(args))
    if args.shape == POOL:
        pool(args, ended, consumer)
        return
    report, work = Report(args), SHAPES[args.shape](args)
    try:
        while not ended.is_set():
            time.sleep(work.wait_s)
            work.add(report.processed(consumer.poll(timeout_ms=200, max_records=work.most)))
            report.send(consumer, consumer._coordinator._generation.generation_id)
            time.sleep(work.left_s)
            while work.hangs and not ended.is_set():
                time.sleep(REPORT_S)
            work.end()
    finally:
        consumer.close()


def pool(args, ended, consumer):
    """Eight threads behind a bounded queue, paused while it is full; every two seconds it commits what is done."""
    from kafka import OffsetAndMetadata

    report, records, done = Report(args), queue.Queue(), queue.Queue()

    def work():
        while (taken := records.get()) is not None:
            time.sleep(8 / args.speed)
            done.put(taken)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    positions, committed_at = {}, time.monotonic()
    try:
        while not ended.is_set():
            full = records.qsize() >= 200
            consumer.pause(*consumer.assignment()) if full else consumer.resume(*consumer.paused())
            for partition, given in consumer.poll(timeout_ms=50).items():
                for record in given:
                    records.put((partition, record))
            while not done.empty():
                partition, record = done.get()
                report.processed({partition: [record]})
                if partition in consumer.assignment():
                    positions[partition] = max(positions.get(partition, 0), record.offset + 1)
            positions = {key: offset for key, offset in positions.items() if key in consumer.assignment()}
            if positions and time.monotonic() - committed_at >= 2.0:
                committed_at = time.monotonic()
                consumer.commit({key: OffsetAndMetadata(offset, "", -1) for key, offset in positions.items()})
            report.send(consumer, consumer._coordinator._generation.generation_id)
    finally:
        for _ in threads:
            records.put(None)
        consumer.close()


async def aiokafka(args, ended):
    import aiokafka.errors

    from loadwise import aiokafka_consumer
    from loadwise.assignor.clients.aiokafka import lag as aiokafka_lag

    unreadable, read = Unreadable(args, aiokafka.errors), aiokafka_lag.AiokafkaLag._read_once

    async def read_once(*asked):
        unreadable.check()
        await read(*asked)

    aiokafka_lag.AiokafkaLag._read_once = read_once
    consumer = aiokafka_consumer(*topics(args), **options(args))
    await consumer.start()
    report, work = Report(args), SHAPES[args.shape](args)
    try:
        while not ended.is_set():
            await asyncio.sleep(work.wait_s)
            cost = report.processed(await consumer.getmany(timeout_ms=200, max_records=work.most))
            report.send(consumer, consumer._coordinator.generation)
            await work.start(cost) if isinstance(work, Tasks) else work.add(cost)
            await asyncio.sleep(work.left_s)
            work.end()
    finally:
        await consumer.stop()


def librdkafka(args):
    """The same options by librdkafka's names."""
    given = options(args)
    del given["max_poll_records"]
    assignor = given.pop("assignor")
    return {name.replace("_", "."): value for name, value in given.items()} | {"log_level": 0}, assignor


def by_partition(messages):
    """What Python's clients answer: records by partition."""
    from confluent_kafka import TopicPartition

    batches = {}
    for message in messages:
        if message.error() is None:
            batches.setdefault(TopicPartition(message.topic(), message.partition()), []).append(message)
    return batches


def confluent(args, ended):
    from loadwise import confluent_consumer

    config, assignor = librdkafka(args)
    consumer = confluent_consumer(config, assignor=assignor)
    consumer.subscribe(topics(args))
    report, work = Report(args), SHAPES[args.shape](args)
    try:
        while not ended.is_set():
            time.sleep(work.wait_s)
            work.add(report.processed(by_partition(consumer.consume(work.most, timeout=0.2))))
            report.send(consumer, consumer._member._coordinator._generation.generation_id)
            time.sleep(work.left_s)
            work.end()
    finally:
        consumer.close()


async def confluent_aio(args, ended):
    from loadwise import confluent_aio_consumer

    config, assignor = librdkafka(args)
    consumer = confluent_aio_consumer(config, assignor=assignor)
    await consumer.subscribe(topics(args))
    report, work, inner = Report(args), Work(args), consumer._consumer
    try:
        while not ended.is_set():
            work.add(report.processed(by_partition(await consumer.consume(100, timeout=0.2))))
            report.send(inner, inner._member._coordinator._generation.generation_id)
            await asyncio.sleep(work.left_s)
            work.end()
    finally:
        await consumer.close()


def spark(args, ended):
    """What a Spark stream does that is a member, without Spark: half a second's work in a micro-batch at most."""
    from confluent_kafka import TopicPartition
    from member_group import Stream

    config, assignor = librdkafka(args)
    del config["auto.offset.reset"], config["log_level"]
    given = {"subscribe": args.topic, "startingOffsets": "earliest", "assignment.mode": "member"}
    given |= {"assignment.strategy": assignor, "maxOffsetsPerTrigger": str(int(args.speed / 2))}
    stream = Stream(given | {f"kafka.{name}": str(value) for name, value in config.items()})
    report, work = Report(args), Work(args)
    try:
        while not ended.is_set():
            stream.step()
            batches = {}
            for partition, offset in stream.came.popitem()[1] if stream.came else ():
                batches.setdefault(TopicPartition(args.topic, partition), []).append(offset)
            work.add(report.processed(batches))
            time.sleep(max(work.left_s, 0.1))  # a trigger interval at least
            work.end()
            if stream.reader._members is not None:
                consumer = stream.reader._members._members[0].membership._consumer
                report.send(consumer, consumer._coordinator._generation.generation_id)
    finally:
        stream.end()


def jumping(clock):
    """A clock that is an hour slow, then right, then an hour fast, each for a few readings of the offsets."""
    began = time.monotonic()
    return lambda: clock() + 3600 * (int((time.monotonic() - began) / JUMP_S) % 3 - 1)


def main():
    parser = argparse.ArgumentParser()
    for name in ("client", "topic", "group", "servers", "name", "assignor"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--instance", default="")
    parser.add_argument("--shape", choices=[*SHAPES, POOL], default="in-line")
    parser.add_argument("--unreadable", default="")
    parser.add_argument("--clock", choices=["right", "jumps"], default="right")
    parser.add_argument("--costly-after", type=int, default=0)
    parser.add_argument("--speed", type=float, required=True)
    parser.add_argument("--more", default="{}")
    args = parser.parse_args()
    if args.clock == "jumps":
        time.time = jumping(time.time)
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {args.name} %(name)s %(message)s", stream=sys.stderr)
    logging.getLogger("kafka").setLevel(logging.ERROR)
    logging.getLogger("kafka.coordinator.consumer").setLevel(logging.WARNING)  # commits that failed
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    match args.client:
        case "spark":
            spark(args, ended)
        case "kafka-python":
            kafka_python(args, ended)
        case "aiokafka":
            asyncio.run(aiokafka(args, ended))
        case "confluent-consumer":
            confluent(args, ended)
        case "confluent-aio":
            asyncio.run(confluent_aio(args, ended))


if __name__ == "__main__":
    main()
