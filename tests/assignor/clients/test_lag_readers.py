"""Reading a group's lag with both clients: the same numbers, and no trouble where there is no broker."""

import asyncio
import gc
import math
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import AsyncMock

import pytest
from aiokafka.errors import KafkaConnectionError
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata
from topics import WAIT_S, fill, grow_topic, make_topic

from loadwise.assignor.clients.aiokafka import AiokafkaLag, aiokafka_consumer
from loadwise.assignor.clients.aiokafka import lag as aiokafka_lag
from loadwise.assignor.clients.kafka_python import KafkaPythonLag
from loadwise.assignor.clients.kafka_python import lag as kafka_python_lag


@pytest.fixture
def silent():
    """An address that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def read_topic(coordinator, topic, group_id):
    """10 records in partition 0, of which 4 are read; 5 in partition 1."""
    producer = KafkaProducer(bootstrap_servers=coordinator.bootstrap_servers)
    for partition, records in ((0, 10), (1, 5)):
        for _ in range(records):
            producer.send(topic, b"x", partition=partition)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=coordinator.bootstrap_servers, group_id=group_id)
    consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(4, "", -1)})
    consumer.close()
    return topic


@pytest.mark.parametrize(("reset", "lags"), [("earliest", [6, 5, 0, 0, 0, 0]), ("latest", [6, 0, 0, 0, 0, 0])])
async def test_both_clients_read_the_same_lag(coordinator, read_topic, group_id, reset, lags):
    config = {
        "bootstrap_servers": coordinator.bootstrap_servers,
        "auto_offset_reset": reset,
        "group_id": group_id,
        "session_timeout_ms": 6000,  # a consumer's own setting, which an admin client would refuse
    }
    threaded = KafkaPythonLag(read_topic, "no-such-topic", **config)
    threaded.start()
    assert await asyncio.to_thread(threaded.wait, WAIT_S)
    await asyncio.to_thread(threaded.close)

    task = AiokafkaLag(read_topic, **config)
    task.start()
    assert await task.wait(WAIT_S)
    await task.close()

    for lag in (threaded, task):
        seen = lag.snapshot([read_topic])
        assert list(seen.load[read_topic]) == lags
        assert (seen.unit, seen.stale, lag.failures) == ("records", False, 0)
        assert "no-such-topic" not in seen.load


async def test_kafka_python_tolerates_a_broker_that_does_not_answer(silent, monkeypatch, caplog, until):
    monkeypatch.setattr(kafka_python_lag, "_TIMEOUT_MS", 100)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    await asyncio.to_thread(lambda: None)  # the loop's own thread, the only one
    before = set(threading.enumerate())
    lag = KafkaPythonLag("t", group_id="g", interval_s=0.01, bootstrap_servers=silent)
    lag.start()
    assert not await asyncio.to_thread(lag.wait, WAIT_S)
    await until(lambda: lag.failures >= 2)  # it goes on trying
    assert lag.snapshot(["t"]) is None
    await asyncio.to_thread(lag.close)
    assert set(threading.enumerate()) <= before, "no thread of ours, nor of the client that could not connect"
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("loadwise")]
    assert len(ours) == 1, "one warning, not one a reading"
    assert "cannot be read" in ours[0]


async def test_kafka_python_sleeps_until_somebody_asks(nowhere, until):
    """The thread of a member that has never led its group: it looked without a pause, at the cost of a whole CPU."""
    waited = []

    class Changed(threading.Condition):
        def wait(self, timeout=None):
            waited.append(timeout)
            return super().wait(timeout)

    lag = KafkaPythonLag("t", group_id="g", bootstrap_servers=nowhere)
    lag._changed = Changed()
    lag.set_interval(math.inf)
    lag.start(at_once=False)
    await until(lambda: waited)
    lag.set_interval(math.inf)
    await until(lambda: len(waited) > 1)
    await asyncio.to_thread(lag.close)
    assert waited == [threading.TIMEOUT_MAX] * 2
    assert lag.failures == 0  # nobody was asked


async def test_aiokafka_tolerates_that_there_is_no_broker(nowhere, monkeypatch, caplog, until):
    monkeypatch.setattr(aiokafka_lag, "_TIMEOUT_S", 0.1)
    lag = AiokafkaLag("t", group_id="g", interval_s=0.01, bootstrap_servers=nowhere)
    lag.start()
    assert not await lag.wait(WAIT_S)
    await until(lambda: lag.failures >= 2)
    assert lag.snapshot(["t"]) is None
    await lag.close()
    assert len(asyncio.all_tasks()) == 1
    assert len([record for record in caplog.records if record.name.startswith("loadwise")]) == 1


async def test_asking_for_the_lag_makes_no_topic(broker, topic_name, group_id, until):
    """A topic that was deleted stays deleted, though brokers make topics that consumers ask for."""
    make_topic(broker, topic_name, 1)
    gone = f"{topic_name}-gone"
    config = {"bootstrap_servers": broker, "group_id": group_id, "interval_s": 0.05}
    task, threaded = AiokafkaLag(topic_name, gone, **config), KafkaPythonLag(topic_name, gone, **config)
    task.start()
    threaded.start()
    assert await task.wait(WAIT_S)
    assert await asyncio.to_thread(threaded.wait, WAIT_S)
    read_at = [lag._read[1] for lag in (task, threaded)]
    await until(lambda: all(lag._read[1] > at for lag, at in zip((task, threaded), read_at, strict=True)))
    await task.close()
    await asyncio.to_thread(threaded.close)
    assert (task.failures, threaded.failures) == (0, 0)
    admin = KafkaAdminClient(bootstrap_servers=broker)
    topics = await asyncio.to_thread(admin.list_topics)
    await asyncio.to_thread(admin.close)
    assert topic_name in topics
    assert gone not in topics


@pytest.mark.parametrize("make", [AiokafkaLag, KafkaPythonLag])
async def test_a_group_that_is_being_loaded_is_none_that_has_committed_nothing(
    coordinator, read_topic, group_id, until, make
):
    """The error of a whole OffsetFetch: the lag would be read as that of a new group, 10 instead of 6."""
    lag = make(
        read_topic,
        group_id=group_id,
        bootstrap_servers=coordinator.bootstrap_servers,
        auto_offset_reset="earliest",
        interval_s=0.05,
    )
    lag.start()
    await until(lambda: lag.snapshot([read_topic]) is not None)
    before = lag.snapshot([read_topic]).load[read_topic].tolist()
    fault = coordinator.faults.answer("OffsetFetch", error="COORDINATOR_LOAD_IN_PROGRESS", group=group_id)
    try:
        if make is AiokafkaLag:  # kafka-python tries again by itself, until the reading takes too long
            await until(lambda: lag.failures > 0)
        assert lag.snapshot([read_topic]).load[read_topic].tolist() == before == [6, 5, 0, 0, 0, 0]
    finally:
        coordinator.faults.remove(fault)
        closed = lag.close()
        if closed is not None:
            await closed


async def test_closing_right_after_more_was_asked_for_ends(coordinator, topic, group_id, until):
    """In Python 3.11 a wait that ends at the moment it is cancelled forgets that it was."""
    lag = AiokafkaLag(topic, group_id=group_id, bootstrap_servers=coordinator.bootstrap_servers, interval_s=1000.0)
    lag.start()
    assert await lag.wait(WAIT_S)
    lag.watch([f"{topic}-more"])
    async with asyncio.timeout(WAIT_S):
        await lag.close()


async def test_a_start_that_is_cancelled_leaves_no_task_behind(silent, until):
    consumer = aiokafka_consumer("t", group_id="g", bootstrap_servers=silent)
    starting = asyncio.create_task(consumer.start())
    await until(lambda: any(task.get_name() == "loadwise-lag-g" for task in asyncio.all_tasks()))
    starting.cancel()
    await asyncio.wait([starting])
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "loadwise-lag-g"]
    await consumer.stop()


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # aiokafka leaves a connection that it was making when it was closed
async def test_a_reading_that_fails_at_once_does_not_end_the_reading(  # noqa: PLR0917 (fixtures)
    coordinator, topic, group_id, monkeypatch, caplog, until
):
    """aiokafka's consumer answers with a cancellation where it is closed before its tasks have begun."""
    failing = AsyncMock(side_effect=KafkaConnectionError)
    monkeypatch.setattr(AiokafkaLag, "_read_once", failing)
    lag = AiokafkaLag(topic, group_id=group_id, bootstrap_servers=coordinator.bootstrap_servers, interval_s=0.01)
    lag.start()
    await until(lambda: lag.failures >= 3)
    await lag.close()
    assert "KafkaConnectionError" in caplog.text
    failing.reset_mock()  # it knows the clients that it was called with
    gc.collect()


async def test_kafka_python_asks_which_partitions_there_are_once_a_minute_and_after_a_failure(
    broker, topic_name, group_id, monkeypatch, until
):
    """For 20,000 partitions, the answer is a large part of what a reading costs."""
    gone = f"{topic_name}-gone"
    for topic in (topic_name, gone):
        make_topic(broker, topic, 3)
    lag = KafkaPythonLag(topic_name, gone, group_id=group_id, interval_s=0.05, bootstrap_servers=broker)
    readings, asked = [], []
    lag.listener = readings.append
    metadata = kafka_python_lag.Admin._get_cluster_metadata

    async def told(*args):
        asked.append(args)
        return await metadata(*args)

    monkeypatch.setattr(kafka_python_lag.Admin, "_get_cluster_metadata", told)
    lag.start()
    # Until a broker has made the topic of committed offsets, no reading succeeds, and each asks again.
    await until(lambda: readings)
    before, failures = len(asked), lag.failures
    await until(lambda: len(readings) >= 6)
    assert len(readings[-1]) == 6
    assert len(asked) == before
    admin = KafkaAdminClient(bootstrap_servers=broker)
    await asyncio.to_thread(admin.delete_topics, [gone])
    await until(lambda: len(readings[-1]) == 3)
    assert len(asked) > before
    await asyncio.to_thread(admin.close)
    await asyncio.to_thread(lag.close)
    assert lag.failures == failures


async def test_kafka_python_reads_a_topic_that_is_added_while_it_begins_a_reading(
    broker, topic_name, group_id, monkeypatch, until
):
    added = f"{topic_name}-added"
    for topic in (topic_name, added):
        make_topic(broker, topic, 3)
    lag = KafkaPythonLag(topic_name, group_id=group_id, interval_s=0.05, bootstrap_servers=broker)
    readings = []
    lag.listener = readings.append
    topics_to_read = lag._topics_to_read

    def adds():
        topics = topics_to_read()
        if added not in topics:
            lag.include([added])  # as another thread may
        return topics

    monkeypatch.setattr(lag, "_topics_to_read", adds)
    lag.start()
    await until(lambda: len(readings) >= 3)
    await asyncio.to_thread(lag.close)
    assert [len(reading) for reading in readings[:3]] == [3, 6, 6]


def deletes(servers, topic, before):
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.delete_records({TopicPartition(topic, 0): before})
    admin.close()


@pytest.mark.parametrize("client", [kafka_python_lag, aiokafka_lag], ids=["kafka-python", "aiokafka"])
async def test_where_partitions_begin_is_read_once_a_minute_and_at_once_of_new_ones(
    coordinator, read_topic, monkeypatch, until, client
):
    make = KafkaPythonLag if client is kafka_python_lag else AiokafkaLag
    servers = coordinator.bootstrap_servers
    lag = make(read_topic, group_id="g", interval_s=0.05, bootstrap_servers=servers, auto_offset_reset="earliest")
    readings = []
    lag.listener = readings.append
    lag.start()
    await until(lambda: readings)
    await asyncio.to_thread(deletes, servers, read_topic, 7)
    await asyncio.to_thread(grow_topic, servers, read_topic, 7)
    await asyncio.to_thread(fill, servers, read_topic, [0] * 6 + [3])
    lag.include([read_topic])  # as the leader does when topics have changed
    await until(lambda: (read_topic, 6) in readings[-1] and readings[-1][read_topic, 6].end == 3)
    assert readings[-1][read_topic, 0].beginning == 0, "as it was at the first reading"
    assert readings[-1][read_topic, 6].beginning == 0
    monkeypatch.setattr(client, "BEGINNINGS_S", 0.0)
    await until(lambda: readings[-1][read_topic, 0].beginning == 7)
    await (lag.close() if client is aiokafka_lag else asyncio.to_thread(lag.close))
