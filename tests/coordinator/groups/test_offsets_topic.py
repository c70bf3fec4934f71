"""``__consumer_offsets`` as clients read it: there, internal, with the records that Apache Kafka writes."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Iterator

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from topics import WAIT_S, make_topic

from loadwise.coordinator import Coordinator, ThreadedCoordinator

TOPIC = "__consumer_offsets"
OFFSET_KEY, GROUP_KEY = 1, 2


def commit(address: str, group_id: str, offset: int | None, topic: str = "t") -> None:
    """Commit an offset without being a member; None: delete the group."""
    if offset is None:
        admin = AdminClient({"bootstrap.servers": address})
        admin.delete_consumer_groups([group_id])[group_id].result(WAIT_S)
        return
    settings = {"bootstrap.servers": address, "group.id": group_id, "enable.auto.commit": False}
    with contextlib.closing(confluent_kafka.Consumer(settings)) as consumer:
        partition = confluent_kafka.TopicPartition(topic, 0, offset, metadata="note")
        consumer.commit(offsets=[partition], asynchronous=False)


def partitions(address: str) -> list[int]:
    """The partitions of the topic, once it is there."""
    client = AdminClient({"bootstrap.servers": address, "log_level": 0})
    deadline = time.monotonic() + WAIT_S
    while not (found := client.list_topics(TOPIC, timeout=WAIT_S).topics[TOPIC].partitions):
        assert time.monotonic() < deadline
    return list(found)


def read_all(address: str, *, keep: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """All records by now with these bytes in their keys, in the order of each partition."""
    settings = {"bootstrap.servers": address, "group.id": "reader", "enable.partition.eof": True, "log_level": 0}
    with contextlib.closing(confluent_kafka.Consumer(settings)) as consumer:
        left = dict.fromkeys(partitions(address))
        consumer.assign(
            [confluent_kafka.TopicPartition(TOPIC, number, confluent_kafka.OFFSET_BEGINNING) for number in left]
        )
        while left:
            message = consumer.poll(WAIT_S)
            assert message is not None
            if message.error() is None:
                if keep in message.key():
                    yield message.key(), message.value()
            else:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                left.pop(message.partition(), None)


def version(data: bytes) -> int:
    number: int = struct.unpack_from(">h", data)[0]
    return number


def without_times(key: bytes, value: bytes | None) -> tuple[bytes, bytes | None]:
    """A record without what differs from run to run: when an offset was committed, and the topic's id."""
    if value is not None and version(key) == OFFSET_KEY:
        value = value[: -8 - 19] + value[-19:-16]
    return key, value


@pytest.fixture(scope="module")
def ours() -> Iterator[ThreadedCoordinator]:
    with Coordinator({"t": 1}).in_thread() as coordinator:
        yield coordinator


def test_offsets_that_were_committed_before_and_while_it_is_read_are_in_it(ours: ThreadedCoordinator) -> None:
    address = ours.bootstrap_servers
    commit(address, "before", 3)
    seen = list(read_all(address, keep=b"before"))
    assert [version(key) for key, _ in seen if version(key) == OFFSET_KEY] == [OFFSET_KEY]
    commit(address, "before", 4)
    commit(address, "before", None)
    values = [value for key, value in read_all(address, keep=b"before") if version(key) == OFFSET_KEY]
    assert [None if value is None else struct.unpack_from(">q", value, 2)[0] for value in values] == [3, 4, None]


def test_it_is_internal_and_only_brokers_write_it(ours: ThreadedCoordinator) -> None:
    commit(ours.bootstrap_servers, "g", 1)
    assert len(partitions(ours.bootstrap_servers)) == 50
    producer = confluent_kafka.Producer({"bootstrap.servers": ours.bootstrap_servers, "log_level": 0})
    errors: list[confluent_kafka.KafkaError] = []
    producer.produce(TOPIC, b"x", partition=0, on_delivery=lambda error, _: errors.append(error))
    producer.flush(WAIT_S)
    assert [error.code() for error in errors] == [confluent_kafka.KafkaError.TOPIC_EXCEPTION]


def test_outdated_records_do_not_pile_up(ours: ThreadedCoordinator) -> None:
    address = ours.bootstrap_servers
    list(read_all(address, keep=b"many"))  # from now on it has contents
    settings = {"bootstrap.servers": address, "group.id": "many", "enable.auto.commit": False}
    with contextlib.closing(confluent_kafka.Consumer(settings)) as consumer:
        for offset in range(2500):
            consumer.commit(offsets=[confluent_kafka.TopicPartition("t", 0, offset)], asynchronous=False)
    records = list(read_all(address, keep=b"many"))
    assert len(records) < 1100
    key, value = records[-1]
    assert version(key) == OFFSET_KEY
    assert value is not None
    assert struct.unpack_from(">q", value, 2)[0] == 2499


def test_its_partitions_are_led_by_the_brokers_that_coordinate_their_groups() -> None:
    with Coordinator({"t": 1}, brokers=4).in_thread() as coordinator:
        commit(coordinator.bootstrap_servers, "g", 1)
        for to in (2, 4, 1, 3):
            coordinator.move_coordinator("g", to)
            settings = {"bootstrap.servers": coordinator.bootstrap_servers, "log_level": 0}
            client = AdminClient(settings)  # one that remembers no coordinator
            led = client.list_topics(TOPIC, timeout=WAIT_S).topics[TOPIC].partitions
            group = client.describe_consumer_groups(["g"])["g"].result(WAIT_S)
            partition = next(
                number for number in led if abs(sum(31**i * ord(c) for i, c in enumerate(reversed("g")))) % 50 == number
            )
            assert (led[partition].leader, group.coordinator.id) == (to, to)


@pytest.mark.kafka
def test_its_records_are_those_that_apache_kafka_writes(
    apache_kafka: str, ours: ThreadedCoordinator, group_id: str
) -> None:
    seen = {}
    for name, address in (("Apache Kafka", apache_kafka), ("ours", ours.bootstrap_servers)):
        topic = f"topic-of-{group_id}"
        make_topic(address, topic, 1)
        commit(address, f"before-{group_id}", 1, topic)
        assert list(read_all(address, keep=group_id.encode()))  # ours has all changes from the first reading on
        for offset in (3, 5, None):
            commit(address, group_id, offset, topic)
        seen[name] = [
            without_times(*each)
            for each in read_all(address, keep=struct.pack(">h", len(group_id)) + group_id.encode())
        ]
    assert seen["ours"] == seen["Apache Kafka"]


@pytest.mark.kafka
def test_groups_are_written_as_apache_kafka_writes_them(
    apache_kafka: str, ours: ThreadedCoordinator, group_id: str
) -> None:
    seen = {}
    for name, address in (("Apache Kafka", apache_kafka), ("ours", ours.bootstrap_servers)):
        topic = f"members-of-{group_id}"
        make_topic(address, topic, 1)
        settings = {"bootstrap.servers": address, "group.id": group_id, "client.id": "c", "group.instance.id": "i"}
        consumer = confluent_kafka.Consumer({**settings, "partition.assignment.strategy": "range"})
        consumer.subscribe([topic])
        deadline = time.monotonic() + WAIT_S
        while not consumer.assignment():
            consumer.poll(0.1)
            assert time.monotonic() < deadline
        member_id = consumer.memberid().encode()
        _, value = [each for each in read_all(address, keep=group_id.encode()) if version(each[0]) == GROUP_KEY][-1]
        consumer.close()
        assert value is not None
        name_at = value.index(struct.pack(">hq", len(member_id), 0)[:2] + member_id) + 2 + len(member_id)
        stable, time_of_state = value[:name_at], value[name_at : name_at + 8]
        assert struct.unpack(">q", time_of_state)[0] > 0, name
        rest = value[name_at + 8 :]
        seen[name] = (stable + rest).replace(member_id, b"member")
    assert seen["ours"] == seen["Apache Kafka"]
