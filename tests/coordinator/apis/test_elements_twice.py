"""Requests that name one thing twice: the rows, errors and effects are those of Apache Kafka, in every API with arrays.

An element of each array of a request is doubled: as it is, with another value, or with another partition. What must
never come back is also tested without Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import UUID

import pytest
from doubled_requests import EVERY, Doubler, Values, doubled
from hypothesis import given
from hypothesis import strategies as st
from record_batches import batch
from topics import WAIT_S, until

from loadwise.coordinator import ThreadedCoordinator
from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.handling.named_twice import EachOnce
from loadwise.coordinator.routing.services import services
from loadwise.coordinator.turns import whole
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DeleteRecordsRequest
from loadwise.protocol.messages import Request
from loadwise.protocol.schemas import schema
from loadwise.protocol.structs import StructSchema

ELSEWHERE = {
    "CreateDelegationToken": "there are no delegation tokens",
    "DescribeDelegationToken": "there are no delegation tokens",
    "ShareAcknowledge": "test_share_same_as_kafka",
    "ShareFetch": "test_share_same_as_kafka",
    "StreamsGroupHeartbeat": "test_streams_same_as_kafka",
}
NEVER_ANSWERED = {
    ("alter_configs", "resources"),
    ("alter_configs", "resources (changed)"),
    ("write_txn_markers", "markers.topics"),
    ("write_txn_markers", "markers.topics (another partition between)"),
    ("write_txn_markers", "markers.topics.partition_indexes"),
    ("write_txn_markers", "markers.topics.partition_indexes (another partition between)"),
}
"""By Kafka 4.3.1, whose threads wait for ever."""


def has_array(found: StructSchema) -> bool:
    inner = [field.struct for field in found.fields.values() if field.struct is not None]
    return any(field.is_array for field in found.fields.values()) or any(map(has_array, inner))


def test_every_api_with_an_array_is_tried() -> None:
    named = {service.api.name for service in services().values() if has_array(schema(f"{service.api.name}Request"))}
    tried = {"".join(part.capitalize() for part in name.split("_")) for name in EVERY}
    assert tried | ELSEWHERE.keys() == named
    assert not tried & ELSEWHERE.keys()


def variants(values: Values) -> Iterator[tuple[str, Values]]:
    yield "as it is", values
    yield from doubled(values)


def played(address: str, name: str, number: int, which: int, expected: Any = None) -> tuple[Any, Any]:
    """The answer of one variant of one request, and the state of the broker, once it is the expected one."""
    with closing(Doubler(address)) as broker:
        api, version, values = next(each for place, each in enumerate(EVERY[name](broker)) if place == number)
        _, changed = next(each for place, each in enumerate(variants(values)) if place == which)
        answer = broker.answer((api, version, changed))
        if expected is not None:  # Kafka's brokers learn of changes after the answer
            until(lambda: broker.state() == expected, lambda: (broker.state(), expected))
        return answer, broker.state()


@pytest.mark.kafka
@pytest.mark.timeout(10 * WAIT_S)
@pytest.mark.parametrize("name", EVERY)
def test_ours_answers_as_kafka_does(apache_kafka: str, coordinator: ThreadedCoordinator, name: str) -> None:
    ours = coordinator.bootstrap_servers
    with closing(Doubler(ours)) as broker:
        cases = [
            (number, which, place)
            for number, (_, _, values) in enumerate(EVERY[name](broker))
            for which, (place, _) in enumerate(variants(values))
            if (name, place) not in NEVER_ANSWERED
        ]
    for number, which, place in cases:
        answer, state = played(ours, name, number, which)
        kafkas, _ = played(apache_kafka, name, number, which, expected=state)
        assert answer == kafkas, (number, place)


# ---- on both brokers, ours in the default tier ----

NO_ID = UUID(int=0)


@pytest.fixture
def session(broker: str) -> Iterator[Doubler]:
    with closing(Doubler(broker)) as opened:
        yield opened


def test_a_topic_that_is_deleted_twice_in_one_request_stays(session: Doubler) -> None:
    by_name = {"name": session.topic, "topic_id": NO_ID}
    by_id = {"name": None, "topic_id": session.topic_id}
    both = {"name": session.topic, "topic_id": session.topic_id}
    neither = {"name": None, "topic_id": NO_ID}

    def deleted(*topics: Values) -> list[int]:
        answer = session.ask("DeleteTopics", 6, topics=[dict(each) for each in topics], timeout_ms=10_000)
        return [each.error_code for each in answer.responses]

    refused = ErrorCode.INVALID_REQUEST
    for twice in ((by_name, by_name), (by_id, by_id), (by_name, by_id), (by_id, by_name, by_id)):
        assert set(deleted(*twice)) == {refused}
        assert session.id_of(session.topic) == session.topic_id
    assert deleted(both, neither) == [refused, refused]
    older = session.ask("DeleteTopics", 5, topic_names=[session.topic] * 3, timeout_ms=10_000).responses
    assert [each.error_code for each in older] == [refused]
    assert deleted(by_name) == [0]


def test_groups_and_records_that_are_deleted_twice_are_answered_once(session: Doubler) -> None:
    rows = [{"partition_index": 0, "offset": offset} for offset in (2, 1)]
    topics = [{"name": session.topic, "partitions": [row]} for row in rows]
    (topic,) = session.ask("DeleteRecords", 2, topics=topics, timeout_ms=10_000).topics
    assert [(each.error_code, each.low_watermark) for each in topic.partitions] == [(0, 1)], "the last one counts"
    results = session.ask("DeleteGroups", 2, groups_names=[session.group] * 2).results
    assert [(each.group_id, each.error_code) for each in results] == [(session.group, 0)]


def test_of_two_batches_for_a_partition_the_last_is_written(session: Doubler) -> None:
    rows = [{"index": 0, "records": batch(values)} for values in ([b"x", b"y"], [b"z"])]
    data = [{"name": session.topic, "partition_data": rows}]
    (topic,) = session.ask("Produce", 9, acks=-1, timeout_ms=10_000, topic_data=data).responses
    assert [(each.error_code, each.base_offset) for each in topic.partition_responses] == [(0, 3)]
    assert session.listed_offset().offset == 4


NAMED = st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.integers(0, 2), max_size=3)), max_size=5)


@given(NAMED, st.booleans())
def test_each_partition_counts_once_with_its_last_row(named: list[tuple[str, list[int]]], is_linked: bool) -> None:
    numbers = iter(range(99))
    topic, row = DeleteRecordsRequest.DeleteRecordsTopic, DeleteRecordsRequest.DeleteRecordsTopic.DeleteRecordsPartition
    topics = [
        topic(name=name, partitions=[row(partition_index=each, offset=next(numbers)) for each in partitions])
        for name, partitions in named
    ]
    body = DeleteRecordsRequest(topics=topics)
    api = next(service.api for service in services().values() if service.api.name == "DeleteRecords")
    call = Call(1, Request(api, 2, 1, None, body), "/127.0.0.1")
    expected: dict[tuple[str, int], int] = {}
    for each in topics:
        for partition in each.partitions:
            expected[each.name, partition.partition_index] = partition.offset
    once = whole(EachOnce("partition_index", is_linked=is_linked).of(call))
    found = [(each.name, part.partition_index, part.offset) for each in once.body.topics for part in each.partitions]
    assert {(name, index): offset for name, index, offset in found} == expected
    assert len(found) == len(expected)
