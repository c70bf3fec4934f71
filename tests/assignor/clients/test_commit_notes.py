"""How fast members are, beside the offsets that they commit: on real brokers, by real consumers."""

import threading
from unittest.mock import PropertyMock

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AiokafkaPartition
from aiokafka.structs import OffsetAndMetadata as AiokafkaOffset
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position
from kafka import KafkaAdminClient
from kafka.structs import OffsetAndMetadata, TopicPartition
from topics import make_topic

from loadwise.assignor.clients import commit_notes, kafka_python, member_commits
from loadwise.assignor.live.work import BusyTime
from loadwise.protocol.live_notes import CommitNote

CLIENTS = ["kafka-python", "aiokafka"]


@pytest.fixture(autouse=True)
def speed(monkeypatch):
    """All members have measured this."""
    monkeypatch.setattr(BusyTime, "per_s", PropertyMock(return_value=1234.5))


def committed(servers, group_id, topic):
    """Offset and metadata of each partition with a committed offset."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        found = admin.list_group_offsets(group_id)[group_id]
    finally:
        admin.close()
    return {each.partition: (at.offset, at.metadata) for each, at in found.items() if each.topic == topic}


async def commit(member, topic, offsets):
    """Commit offsets and metadata by the member's own client; whether it is done."""
    if isinstance(member.consumer, AIOKafkaConsumer):
        await member.consumer.commit({AiokafkaPartition(topic, number): at for number, at in offsets.items()})
        return lambda: True
    given = {TopicPartition(topic, number): OffsetAndMetadata(*at, -1) for number, at in offsets.items()}
    done = threading.Event()
    member.consumer.commit_async(given, callback=lambda *_: done.set())
    return done.is_set


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_member_writes_its_speed_beside_one_offset_and_leaves_those_of_its_user(
    broker, group, topic_name, client, until
):
    make_topic(broker, topic_name, 3)
    group.settings["bootstrap_servers"] = broker
    member = await group.join(client, topic_name)
    try:
        await group.settle(3)
        done = await commit(member, topic_name, {0: (0, "mine"), 1: (0, ""), 2: (0, "")})
        await until(done)
        found = committed(broker, group.settings["group_id"], topic_name)
    finally:
        await group.leave(member)
    # librdkafka reads what is committed as a string of C.
    reader = Consumer({"bootstrap.servers": broker, "group.id": group.settings["group_id"]})
    [noted] = reader.committed([Position(topic_name, 1)], timeout=30)
    reader.close()
    assert noted.metadata + "\0" == found[1][1]
    name = member.consumer.assignor.participant.leader.name
    notes = [CommitNote.decode(metadata, name) for _, (_, metadata) in sorted(found.items())]
    assert found[0] == (0, "mine")
    assert [note and note.measured_per_s for note in notes] == [None, 1234.5, None]


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_broker_that_takes_no_metadata_takes_the_commit(group, topic, client, until, monkeypatch):
    """Kafka's ``offset.metadata.max.bytes`` may be anything; the note is as long here as no broker takes it."""
    too_long = "loadwise:1 " + "x" * 5000
    monkeypatch.setattr(
        member_commits, "with_note", lambda offsets, note: commit_notes.with_note(offsets, note and too_long)
    )
    member = await group.join(client, topic)
    await group.settle(6)
    await until(await commit(member, topic, {0: (0, ""), 1: (0, "")}))
    servers, name = group.settings["bootstrap_servers"], group.settings["group_id"]
    assert committed(servers, name, topic) == {0: (0, ""), 1: (0, "")}


def test_a_note_is_written_once_and_old_ones_are_taken_off():
    def offset(metadata):
        return AiokafkaOffset(5, metadata)

    offsets = {0: offset("loadwise:1 old"), 1: offset("mine"), 2: offset("loadwise:1 older"), 3: offset("")}
    assert [at.metadata for at in commit_notes.with_note(offsets, "new").values()] == ["new", "mine", "", ""]
    assert [at.metadata for at in commit_notes.with_note(offsets, "").values()] == ["", "mine", "", ""]


async def test_a_user_who_reads_metadata_reads_none_of_ours(group, topic, until):
    member = await group.join("kafka-python", topic)
    await group.settle(6)
    await until(await commit(member, topic, {0: (0, "mine"), 1: (0, "")}))
    servers, name = group.settings["bootstrap_servers"], group.settings["group_id"]
    noted = committed(servers, name, topic)
    assert noted[1][1]
    reader = kafka_python.kafka_python_consumer(group_id=name, bootstrap_servers=servers)
    try:
        found = [reader.committed(TopicPartition(topic, number), metadata=True) for number in range(3)]
        assert reader.committed(TopicPartition(topic, 1)) == 0
    finally:
        reader.close()
    assert [at and (at.offset, at.metadata) for at in found] == [(0, "mine"), (0, ""), None]
