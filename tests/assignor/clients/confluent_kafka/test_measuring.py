"""What confluent-kafka's consumer tells of the work between its calls: without a broker, by a clock of the test."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka.structs import OffsetAndMetadata, TopicPartition

from loadwise import ConfluentConsumer, confluent_consumer
from loadwise.assignor.clients.confluent_kafka import consumer as confluent_kafka
from loadwise.assignor.clients.confluent_kafka.work import WorkBetweenCalls
from loadwise.assignor.live.work import BusyTime

PARTITION = TopicPartition("t", 0)


class Measured:
    """A consumer whose position, records and clock a test sets; what it has told of its work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, consumer: ConfluentConsumer) -> None:
        self.now, self.position, self.told = 1000.0, 0, []
        self.consumer, self.busy = consumer, Mock()
        self.busy.took.side_effect = self._took
        consumer._member = Mock(busy=self.busy, joining=False, polled_late=False, topic_errors={})
        consumer._positions = lambda: {PARTITION: OffsetAndMetadata(self.position, "", -1)}
        monkeypatch.setattr(confluent_kafka, "monotonic", lambda: self.now)

    def _took(self, records, busy_s, *_, **__):
        self.told.append((records.get("t", 0), round(busy_s, 3)))

    def measuring_takes(self, *seconds):
        """The next measurements take so long, each its own time."""
        left, positions = list(seconds), self.consumer._positions

        def slowly():
            self.now += left.pop(0)
            return positions()

        self.consumer._positions = slowly

    def measure(self, position):
        self.now += 1
        self.position = position
        self.consumer._measure(1)


@pytest.fixture
def measured(monkeypatch):
    with confluent_consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 2}) as consumer:
        yield Measured(monkeypatch, consumer)


def test_what_others_processed_before_a_partition_came_back_is_not_counted(measured):
    measured.measure(5000)
    measured.measure(5100)
    measured.consumer.revoked([PARTITION])
    measured.measure(9001)
    measured.measure(9003)
    assert [records for records, _ in measured.told] == [0, 100, 0, 2]


def test_a_pause_after_a_call_without_records_is_no_work(measured, monkeypatch):
    """Who finds nothing and sleeps would be taken for slow."""
    message = SimpleNamespace(error=lambda: None)
    found = [None, message, None, message]
    monkeypatch.setattr(confluent_kafka, "_read", lambda *_: found.pop() if found else None)
    measured.measure(0)
    for _ in range(6):
        if measured.consumer.poll(0) is None:
            measured.now += 0.1
        else:
            measured.position += 1
            measured.now += 0.001
    measured.now += 1  # it is measured again
    measured.consumer.poll(0)
    assert sum(records for records, _ in measured.told) == 2
    assert sum(worked_s for records, worked_s in measured.told if records) == pytest.approx(0.002)


@pytest.mark.parametrize("call", ["poll", "consume"])
def test_neither_a_call_that_raises_nor_what_follows_it_is_work(measured, monkeypatch, call):
    """A broker that is away makes a call wait and raise, and applications wait a while before the next one."""

    def read(*_):
        measured.now += 5
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    monkeypatch.setattr(confluent_kafka, "_read", read)
    monkeypatch.setattr(confluent_kafka, "_consume", read)
    measured.measure(0)
    measured.position = 100
    measured.now += 0.2
    for _ in range(3):
        with pytest.raises(KafkaException):
            getattr(measured.consumer, call)(timeout=1)
        measured.now += 10
    measured.measure(100)
    assert sum(records for records, _ in measured.told) == 100
    assert sum(worked_s for _, worked_s in measured.told[1:]) == pytest.approx(0.2)


@pytest.mark.parametrize(("most", "each_s"), [(1, 0.03), (1, 0.001), (10, 0.03)])
def test_a_member_is_as_fast_as_its_records_allow_however_many_fall_into_a_measurement(most, each_s):
    """A measurement ends by the clock: if it counted as one poll, the poll would seem to take all the time."""
    random, work, busy, now, position, said = Random(7), WorkBetweenCalls(0.0), BusyTime(), 1.0, 0, []
    while now < 20:
        if work.asks(most, now):
            work.measure(busy, {PARTITION: OffsetAndMetadata(position, "", -1)}, now)
            said.append(busy.per_s)
        count = random.randint(1, most)
        position, now = position + count, now + sum(random.expovariate(1 / each_s) for _ in range(count))
    assert any(said)
    assert all(0.5 < per_s * each_s < 1.5 for per_s in said if per_s)


def test_a_measurement_that_is_slow_once_delays_no_other(measured):
    """librdkafka's own thread answers, and may be busy: 40 s without a measurement would follow from 0.8 s."""
    measured.measuring_takes(0.8, 0.001, 0.8, 0.8, 0.001)
    due = []
    for _ in range(5):
        began = measured.now
        measured.consumer._measure(100)
        assert measured.now > began
        while not measured.consumer._work.asks(100, measured.now):
            measured.now += 0.01
        due.append(round(measured.now - began))
    assert due == [1, 0, 1, 40, 0]


def test_what_measuring_takes_is_no_work(measured):
    measured.measuring_takes(0.3, 0.3, 0.3)
    for position in (0, 100, 200):
        measured.now += 20
        measured.position = position
        measured.consumer._measure(100)
    assert measured.told[1:] == [(100, 20.0), (100, 20.0)]
