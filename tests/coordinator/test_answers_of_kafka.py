"""Answers that Apache Kafka 4.3.1 gives to requests that clients seldom send; its figures stand beside each."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol import consumer, producer
from record_batches import batch
from sessions import Session

from loadwise.coordinator import Coordinator
from loadwise.protocol.error_codes import ErrorCode

TRANSACTIONAL = 0x10


@pytest.fixture
def broker() -> Iterator[Session]:
    with Coordinator().in_thread() as coordinator:
        session = Session(coordinator.bootstrap_servers)
        assert session.create_topic() == 0
        yield session
        session.close()


def produced(session: Session, records: bytes) -> Any:
    topic = producer.ProduceRequest.TopicProduceData
    data = topic(name=session.topic, partition_data=[topic.PartitionProduceData(index=0, records=records)])
    request = producer.ProduceRequest(version=9, transactional_id=None, acks=-1, timeout_ms=60_000, topic_data=[data])
    return session.ask(request, producer.ProduceResponse).responses[0].partition_responses[0]


def garbage(length: int, magic: int) -> bytes:
    """Something whose bits say that it belongs to a transaction."""
    return struct.pack(">qiib", 0, length, 0, magic) + b"\xff" * 60


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (garbage(13, 2), ErrorCode.CORRUPT_MESSAGE),
        (garbage(65, 3), ErrorCode.CORRUPT_MESSAGE),
        (garbage(65, -1), ErrorCode.CORRUPT_MESSAGE),
        (garbage(66, 2), ErrorCode.INVALID_RECORD),
        (b"\xff" * 5, ErrorCode.INVALID_RECORD),
        (garbage(65, 1), ErrorCode.INVALID_RECORD),
        (garbage(65, 2), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_garbage_is_refused_by_its_length_and_version_first(broker: Session, records: bytes, error: ErrorCode) -> None:
    assert produced(broker, records).error_code == error


def test_a_base_offset_other_than_0_is_refused(broker: Session) -> None:
    for records in (batch([b"a"]), batch([b"a"], producer=(5, 0, 0))):
        assert produced(broker, struct.pack(">q", 55) + records[8:]).error_code == ErrorCode.INVALID_RECORD


def test_a_repeated_batch_is_answered_with_its_largest_timestamp(broker: Session) -> None:
    records = batch([b"a", b"b"], timestamp=1_700_000_000_000, producer=(5, 0, 0))
    answers = [produced(broker, records) for _ in range(2)]
    assert [(each.error_code, each.base_offset, each.log_append_time_ms) for each in answers] == [
        (0, 0, -1),
        (0, 0, 1_700_000_000_001),
    ]


@pytest.mark.parametrize(
    ("metadata_text", "error"), [("é" * 4096, 0), ("é" * 4097, 12), ("😀" * 2048, 0), ("😀" * 2049, 12)]
)
def test_metadata_of_a_commit_is_counted_in_characters_of_java(broker: Session, metadata_text: str, error: int) -> None:
    topic = consumer.OffsetCommitRequest.OffsetCommitRequestTopic
    row = topic.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_leader_epoch=-1, committed_metadata=metadata_text
    )
    request = consumer.OffsetCommitRequest(
        version=8, group_id=broker.group, generation_id_or_member_epoch=-1, member_id="", group_instance_id=None,
        topics=[topic(name=broker.topic, partitions=[row])],
    )  # fmt: skip
    assert broker.ask(request, consumer.OffsetCommitResponse).topics[0].partitions[0].error_code == error


def listed_by_largest_timestamp(session: Session, isolation_level: int) -> tuple[int, int]:
    topic = consumer.ListOffsetsRequest.ListOffsetsTopic
    row = topic.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-3)
    request = consumer.ListOffsetsRequest(
        version=8, replica_id=-1, isolation_level=isolation_level, timeout_ms=1000,
        topics=[topic(name=session.topic, partitions=[row])],
    )  # fmt: skip
    (found,) = session.ask(request, consumer.ListOffsetsResponse).topics[0].partitions
    return found.error_code, found.offset


def test_the_largest_timestamp_in_an_open_transaction_is_not_told_to_readers_of_committed_records(
    broker: Session,
) -> None:
    assert produced(broker, batch([b"a"], timestamp=1000)).error_code == 0
    begun = broker.ask(
        producer.InitProducerIdRequest(
            version=4, transactional_id="x", transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        ),
        producer.InitProducerIdResponse,
    )
    topic = producer.ProduceRequest.TopicProduceData
    records = batch([b"b"], timestamp=2000, producer=(begun.producer_id, begun.producer_epoch, 0), transactional=True)
    data = topic(name=broker.topic, partition_data=[topic.PartitionProduceData(index=0, records=records)])
    request = producer.ProduceRequest(version=12, transactional_id="x", acks=-1, timeout_ms=60_000, topic_data=[data])
    answer = broker.ask(request, producer.ProduceResponse).responses[0].partition_responses[0]
    assert answer.error_code == 0
    assert listed_by_largest_timestamp(broker, 0) == (0, 1)
    assert listed_by_largest_timestamp(broker, 1) == (0, -1)
