"""Reading a group's lag with both clients: the same numbers, and no trouble where there is no broker."""

import asyncio
import socket
import threading

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata
from topics import WAIT_S

from loadwise.assignor.clients import aiokafka_lag, kafka_python_lag
from loadwise.assignor.clients.aiokafka import AiokafkaLag
from loadwise.assignor.clients.kafka_python import KafkaPythonLag


@pytest.fixture
def nowhere():
    """An address where nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


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
    await asyncio.to_thread(lambda: None)  # the loop's own thread
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
