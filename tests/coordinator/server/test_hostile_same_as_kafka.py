"""Requests that no client sends get the same from ours as from Apache Kafka: one name again and again, bad lengths."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from client_messages import client_request, request_bytes
from kafka.protocol import consumer
from sessions import Session


@pytest.fixture
def session(broker: str) -> Iterator[Session]:
    opened = Session(broker)
    yield opened
    opened.close()


def describe_topics(session: Session, times: int) -> Any:
    return session.ask("Metadata", 9, topics=[{"name": session.topic}] * times).topics


def test_a_topic_that_is_named_often_is_answered_once(session: Session) -> None:
    assert [each.name for each in describe_topics(session, 200)] == [session.topic]


def test_a_partition_that_is_named_twice_has_no_offset(session: Session) -> None:
    describe_topics(session, 1)  # makes it
    session.wait_for_topic()
    row = {"partition_index": 0, "timestamp": -1}
    for rows, errors in (([row], [0]), ([row, row], [42])):
        (answered,) = session.ask("ListOffsets", 5, topics=[{"name": session.topic, "partitions": rows}]).topics
        assert [each.error_code for each in answered.partitions] == errors


def test_a_group_that_is_named_often_is_described_as_often(session: Session) -> None:
    assert len(session.ask("DescribeGroups", 5, groups=[session.group] * 200).groups) == 200


@pytest.mark.parametrize("counts", [(10_001,), (6_000, 6_000)], ids=["of one topic", "of two together"])
def test_a_request_for_too_many_partitions_makes_none(session: Session, counts: tuple[int, ...]) -> None:
    topics = [
        {"name": f"{session.topic}-{index}", "num_partitions": count, "replication_factor": 1}
        for index, count in enumerate(counts)
    ]
    made = session.ask("CreateTopics", 5, topics=topics, timeout_ms=60_000, validate_only=False).topics
    assert [each.error_code for each in made] == [44] * len(counts)


def test_a_page_of_topics_cannot_begin_at_a_negative_partition(session: Session) -> None:
    request = client_request(
        "DescribeTopicPartitions", 0, topics=[{"name": session.topic}], response_partition_limit=1,
        cursor={"topic_name": session.topic, "partition_index": -1},
    )  # fmt: skip
    answered = session.exchange(request)
    assert [(each.error_code, len(each.partitions)) for each in answered.topics] == [(42, 0)]
    assert answered.next_cursor is None


def joining(**changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "version": 4, "group_id": "hostile", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000,
        "member_id": "", "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b""}],
    }  # fmt: skip
    request = client_request("JoinGroup", **fields | changes)
    return request_bytes(request, framed=True)


def test_bad_utf_8_is_replaced(session: Session) -> None:
    session.socket.sendall(joining().replace(b"hostile", b"host\xff\xfee"))
    (size,) = struct.unpack(">i", session._read(4))
    answered = consumer.JoinGroupResponse.decode(session._read(size), version=4, header=True)
    assert answered.error_code == 79
    assert answered.member_id


@pytest.mark.parametrize(
    "bad",
    [
        struct.pack(">ihhihi", 14, 3, 0, 1, -1, -5),
        joining(version=9, group_id="x" * 1_000_000, reason=None, group_instance_id=None),
    ],
    ids=["a count of -5", "a group id of a million bytes"],
)
def test_bad_lengths_close_the_connection(session: Session, bad: bytes) -> None:
    session.socket.sendall(bad)
    assert session.socket.recv(1) == b""


def test_a_member_id_that_does_not_fit_into_its_answer_is_an_error(session: Session) -> None:
    request = {"name": "range", "metadata": b""}
    join = client_request(
        "JoinGroup", 3, group_id=session.group, session_timeout_ms=10_000, rebalance_timeout_ms=10_000, member_id="",
        protocol_type="consumer", protocols=[request],
    )  # fmt: skip
    session.socket.sendall(request_bytes(join, 7, "x" * 32_760, framed=True))
    (size,) = struct.unpack(">i", session._read(4))
    assert consumer.JoinGroupResponse.decode(session._read(size), version=3, header=True).error_code == -1
