"""A program that commits what it has processed before its next poll is not refused, and nobody reads that again."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest
from aiokafka import ConsumerRebalanceListener
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import OffsetAndMetadata, TopicPartition
from kafka.errors import RebalanceInProgressError
from polled import know
from topics import WAIT_S, fill, make_topic, until, until_so

from loadwise import aiokafka_consumer, confluent_consumer, kafka_python_consumer
from loadwise.assignor.clients import held_polls

PARTITIONS, RECORDS = 6, 5
EAGER, COOPERATIVE = "weighted", "cooperative-weighted"
SETTINGS = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "heartbeat_interval_ms": 100,
    "session_timeout_ms": 30_000,
    "live": False,
}


@pytest.fixture
def topic(broker, topic_name):
    make_topic(broker, topic_name, PARTITIONS)
    fill(broker, topic_name, [RECORDS] * PARTITIONS)
    return topic_name


@pytest.fixture
def patient(monkeypatch):
    """A poll waits for a join however slow the machine is."""
    monkeypatch.setattr(held_polls, "LONGEST_S", WAIT_S)
    monkeypatch.setattr(held_polls, "OF_REBALANCE_TIMEOUT", 1.0)


@pytest.fixture
def impatient(monkeypatch):
    """A poll does not wait for a join: its limit is over at once."""
    monkeypatch.setattr(held_polls, "LONGEST_S", 0.0)


class KafkaPython:
    """A member of kafka-python."""

    def __init__(self, broker, group_id, topic):
        self.consumer = kafka_python_consumer(
            topic, bootstrap_servers=broker, group_id=group_id, assignor=EAGER, **SETTINGS
        )
        know(self.consumer)
        self.read = []
        """Partition and offset of each record."""

    def poll(self, timeout_ms=0):
        for records in self.consumer.poll(timeout_ms=timeout_ms).values():
            self.read += [(record.partition, record.offset) for record in records]

    @property
    def owned(self):
        return {each.partition for each in self.consumer.assignment()}

    @property
    def coordinator(self):
        return self.consumer._coordinator

    @property
    def joining(self):
        return self.coordinator.rejoining

    def commit(self, partitions, offset):
        places = [TopicPartition(*self.consumer.subscription(), number) for number in partitions]
        self.consumer.commit({place: OffsetAndMetadata(offset, "", -1) for place in places})

    def close(self):
        self.consumer.close()


class Confluent:
    """A member of confluent-kafka."""

    def __init__(self, broker, group_id, topic):
        config = {"bootstrap.servers": broker, "group.id": group_id, "log_level": 0}
        given = {name.replace("_", "."): value for name, value in SETTINGS.items() if name != "live"}
        self.consumer = confluent_consumer(config | given, assignor=EAGER, live=False)
        self.consumer.subscribe([topic])
        self.topic, self.read = topic, []
        self.owned = set()  # of another thread than the one that polls, assignment() may hang

    def poll(self, timeout_ms=0):
        for message in self.consumer.consume(100, timeout_ms / 1000):
            assert message.error() is None
            self.read.append((message.partition(), message.offset()))
        self.owned = {each.partition for each in self.consumer.assignment()}

    @property
    def coordinator(self):
        return self.consumer._member._coordinator

    @property
    def joining(self):
        return self.consumer._member._prepared

    def commit(self, partitions, offset):
        places = [ConfluentPartition(self.topic, number, offset) for number in partitions]
        self.consumer.commit(offsets=places, asynchronous=False)

    def close(self):
        self.consumer.close()


@contextlib.contextmanager
def polled(member):
    """Poll a member on a thread of its own meanwhile."""
    ended, errors = threading.Event(), []

    def run():
        try:
            while not ended.is_set():
                member.poll(20)
        except Exception as error:  # noqa: BLE001 (raised below)
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert errors == []


@pytest.fixture(params=[KafkaPython, Confluent])
def pair(request, broker, group_id, topic):
    """Two members that have read all records and own three partitions each; the first commits by hand."""
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(contextlib.closing(request.param(broker, group_id, topic))) for _ in range(2)
        )
        with polled(second):
            until(lambda: first.poll() or (len(first.owned) == len(second.owned) == 3 and not first.joining))
            first.commit(first.owned, 0)
            everything = {(number, at) for number in range(PARTITIONS) for at in range(RECORDS)}
            until(lambda: first.poll() or {*first.read, *second.read} == everything)
        yield first, second


@pytest.mark.usefixtures("patient")
def test_a_poll_that_begins_an_eager_join_returns_at_its_end(pair):
    first, second = pair
    joined, owned = first.coordinator._generation.generation_id, first.owned
    first.read.clear()
    first.coordinator.request_rejoin()
    with polled(second):
        first.poll(0)
        assert not first.joining
        assert first.coordinator._generation.generation_id > joined
        assert first.owned == owned
        first.commit(first.owned, RECORDS)
        first.poll(500)
    assert first.read == [], "the program had these records before"


@pytest.mark.usefixtures("impatient")
def test_what_was_processed_can_be_committed_while_others_have_not_joined(pair, broker, group_id, topic):
    first, second = pair
    owned = first.owned
    first.coordinator.request_rejoin()
    until(lambda: first.poll(0) or first.joining)
    first.commit(owned, RECORDS)
    third = type(first)(broker, group_id, topic)
    with contextlib.closing(third), polled(second), polled(third):
        until(lambda: first.poll(0) or len(first.owned) == len(second.owned) == len(third.owned) == 2)
        fill(broker, topic, [1] * PARTITIONS)
        until(lambda: first.poll(0) or {number for number, at in third.read if at == RECORDS} == third.owned)
    assert [place for place in third.read if place[0] in owned and place[1] < RECORDS] == []


@pytest.mark.usefixtures("impatient")
def test_a_commit_that_comes_after_the_group_has_joined_is_refused(pair):
    """Others may read on from the last commit already."""
    first, second = pair
    owned = first.owned
    first.coordinator.request_rejoin()
    until(lambda: first.poll(0) or first.joining)
    with polled(second):
        until(lambda: first.coordinator.join_has_ended)
        with pytest.raises((RebalanceInProgressError, KafkaException)) as refused:
            first.commit(owned, 1)
    if isinstance(refused.value, KafkaException):
        assert refused.value.args[0].code() == KafkaError._ASSIGNMENT_LOST


def test_a_thread_that_polls_several_members_waits_in_none(pair):
    first, second = pair
    until(lambda: second.poll(0) or first.poll(0) or not second.joining)
    first.coordinator.request_rejoin()
    until(lambda: second.poll(0) or first.poll(0) or first.joining)
    until(lambda: second.poll(0) or first.poll(0) or not (first.joining or second.joining))


# aiokafka joins in the background.


@pytest.fixture
async def start(broker, group_id, topic):
    """``await start(assignor)`` starts a member; all are stopped at the end."""
    started = []

    async def starts(assignor, listener=None):
        consumer = aiokafka_consumer(bootstrap_servers=broker, group_id=group_id, assignor=assignor, **SETTINGS)
        started.append(consumer)
        consumer.subscribe([topic], listener=listener)
        await asyncio.wait_for(consumer.start(), WAIT_S)
        return consumer

    yield starts
    await asyncio.gather(*(consumer.stop() for consumer in started))


async def read(consumer, count):
    """Read so many records; their partitions and offsets."""
    got = []
    async with asyncio.timeout(WAIT_S):
        while len(got) < count:
            for records in (await consumer.getmany(timeout_ms=50)).values():
                got += [(record.partition, record.offset) for record in records]
    return got


@contextlib.asynccontextmanager
async def awaited(consumer):
    """Get records of a consumer meanwhile; they are what this answers."""
    got = []

    async def run():
        while True:
            for records in (await consumer.getmany(timeout_ms=20)).values():
                got.extend((record.partition, record.offset) for record in records)

    task = asyncio.create_task(run())
    try:
        yield got
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE])
async def test_aiokafka_joins_once_its_program_has_committed_and_comes_for_more(start, broker, topic, assignor):
    first = await start(assignor)
    await read(first, PARTITIONS * RECORDS)
    await first.commit(dict.fromkeys(first.assignment(), 0))
    joined = first._coordinator.generation
    other = asyncio.create_task(start(assignor))  # the first one works on its records meanwhile
    await until_so(lambda: first._coordinator._came_for_records is not None)
    await first.commit(dict.fromkeys(first.assignment(), RECORDS))
    assert len(first.assignment()) == PARTITIONS
    async with awaited(first):
        second = await other
        async with awaited(second) as got:
            await until_so(lambda: len(first.assignment()) == len(second.assignment()) == 3)
            fill(broker, topic, [1] * PARTITIONS)
            await until_so(lambda: {at for _, at in got} == {RECORDS} and len(got) == 3)
    assert first._coordinator.generation > joined


async def test_aiokafka_goes_on_with_a_join_if_its_program_does_not_come(start, monkeypatch):
    monkeypatch.setattr("loadwise.assignor.clients.aiokafka.internals.OF_REBALANCE_TIMEOUT", 1 / 300)
    first = await start(EAGER)
    await read(first, 1)
    await first.commit(dict.fromkeys(first.assignment(), 0))
    second = await start(EAGER)
    await until_so(lambda: len(first.assignment()) == len(second.assignment()) == 3)


async def test_getmany_of_aiokafka_that_an_eager_join_interrupts_returns_at_its_end(start):
    first, second = await start(EAGER), await start(EAGER)
    await read(second, 1)
    await second.commit(dict.fromkeys(second.assignment(), 0))
    async with awaited(first):
        await until_so(lambda: len(first.assignment()) == len(second.assignment()) == 3)
        await first.commit(dict.fromkeys(first.assignment(), 0))
    stock, calls = first._fetcher.fetched_records, []

    async def interrupted(*given, **more):
        calls.append(given)
        if len(calls) > 1:
            return await stock(*given, **more)
        await until_so(lambda: first._subscription.reassignment_in_progress)
        return {}  # its timeout is over

    first._fetcher.fetched_records = interrupted
    getting = asyncio.create_task(first.getmany(timeout_ms=100))
    await until_so(lambda: calls)
    first._coordinator.request_rejoin()
    await until_so(lambda: getting.done() or len(calls) == 2)
    assert not getting.done()
    async with awaited(second):
        await asyncio.wait_for(getting, WAIT_S)
    assert not first._subscription.reassignment_in_progress


async def test_a_commit_of_another_task_succeeds_while_aiokafka_joins(start):
    """The second one has not joined yet: it works on its records."""
    first = await start(EAGER)
    second = await start(EAGER)
    await read(second, 1)
    await second.commit(dict.fromkeys(second.assignment(), 0))
    async with awaited(first):
        await until_so(lambda: len(first.assignment()) == len(second.assignment()) == 3)
        first._coordinator.request_rejoin()
        await until_so(lambda: first._coordinator.joining)
        await asyncio.wait_for(first.commit(dict.fromkeys(first.assignment(), 1)), WAIT_S)
        assert first._coordinator.joining
        async with awaited(second):
            await until_so(lambda: not first._coordinator.joining)


class Silent(ConsumerRebalanceListener):
    """Its program knows that its partitions were revoked."""

    def on_partitions_revoked(self, revoked):
        pass

    def on_partitions_assigned(self, assigned):
        pass


@pytest.mark.parametrize("knows", [False, True])
async def test_an_eager_member_of_aiokafka_reads_kept_partitions_on_if_its_program_does_not_know(start, knows):
    """A program without a listener still has the records from before and commits these."""
    first = await start(EAGER, Silent() if knows else None)
    await read(first, PARTITIONS * RECORDS)
    await first.commit(dict.fromkeys(first.assignment(), 1))
    async with awaited(first):
        second = await start(EAGER)
        await until_so(lambda: len(first.assignment()) == len(second.assignment()) == 3)
        kept = first.assignment()
    async with asyncio.timeout(WAIT_S):
        assert {await first.position(partition) for partition in kept} == ({1} if knows else {RECORDS})
