"""Slices of a message are messages to kafka-python, and are joined to the message that was cut."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from any_message import as_ours, client, message
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from seeds import examples

from loadwise.protocol import cutting, kafka_messages
from loadwise.protocol.cutting import Cut, Cutter, Joiner, cutter
from loadwise.protocol.errors import TooManyElementsError
from loadwise.protocol.kafka_messages import DescribeConfigsResponse, MetadataResponse
from loadwise.protocol.schemas import schema

Rows = tuple[str, ...]
MOST = 1000
CASES: list[tuple[str, Rows]] = [
    ("DescribeGroupsRequest", ("groups",)),
    ("CreateTopicsRequest", ("topics",)),
    ("MetadataResponse", ("topics", "partitions")),  # beside brokers
    ("DescribeConfigsResponse", ("results", "configs")),
    ("ListOffsetsRequest", ("topics", "partitions")),
    ("OffsetFetchRequest", ("groups", "topics", "partition_indexes")),
]
VERSIONS = [(name, rows, version) for name, rows in CASES for version in schema(name).versions]


def has(name: str, rows: Rows, version: int) -> bool:
    """Whether a version has these arrays."""
    fields = schema(name).fields
    for row in rows:
        if version not in fields[row].versions:
            return False
        fields = fields[row].struct.fields if fields[row].struct is not None else {}
    return True


def innermost(value: Any, rows: Rows) -> Iterator[Any]:
    """The elements of the innermost array."""
    for each in getattr(value, rows[0]):
        yield from innermost(each, rows[1:]) if rows[1:] else [each]


def read_whole(cuts: Cutter, data: bytes) -> tuple[list[int], tuple[Cut, int, int]]:
    """What a cutter yields, and what it returns."""
    reading, yielded = cuts.cut(data, 0, MOST), []
    while True:
        try:
            yielded.append(next(reading))
        except StopIteration as end:
            return yielded, end.value


def slices_of(cuts: Cutter, data: bytes) -> list[tuple[bytes, tuple[int, ...]]]:
    _, (cut, behind, _) = read_whole(cuts, data)
    assert behind == len(data)
    return list(cuts.requests(data, cut))


@pytest.mark.parametrize(("name", "rows", "version"), [each for each in VERSIONS if has(*each)])
@examples(10)
@given(data=st.data(), most=st.integers(1, 4))
def test_the_slices_of_a_message_joined_again_are_the_message(
    name: str, rows: Rows, version: int, data: st.DataObject, most: int
) -> None:
    theirs, ours = client(name), getattr(kafka_messages, name)
    made = data.draw(message(theirs, version))
    if getattr(made, rows[0]) is None:
        setattr(made, rows[0], [])
    for each in getattr(made, rows[0]) if rows[1:] else ():
        if getattr(each, rows[1]) is None:
            setattr(each, rows[1], [])
    whole = bytes(made.encode(version=version))
    with patch.object(cutting, "SLICE_ELEMENTS", most):
        slices = slices_of(cutter(schema(name), version, rows), whole)
    joiner = Joiner(schema(name), version, rows)
    found = []
    for sliced, path in slices:
        read = theirs.decode(sliced, version=version)
        found += innermost(read, rows)
        joiner.add(as_ours(read, ours), path)
    assert found == list(innermost(made, rows))
    assert b"".join(joiner.finish()[1]) == whole


def offsets(*partitions: int) -> bytes:
    """A request for offsets in so many partitions of each topic: 1 + 1 element for each."""
    topic = ListOffsetsRequest.ListOffsetsTopic
    rows = [topic.ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(max(partitions))]
    topics = [topic(name="t", partitions=rows[:count]) for count in partitions]
    return bytes(ListOffsetsRequest(version=1, replica_id=-1, topics=topics).encode())


@pytest.mark.parametrize(
    ("partitions", "slices"),
    [
        ([3], [[3]]),
        ([4], [[4]]),
        ([5], [[4], [1]]),
        ([1, 1], [[1, 1]]),
        ([1, 1, 1], [[1, 1], [1]]),
        ([3, 1], [[3], [1]]),
        ([9, 1, 1], [[4], [4], [1], [1, 1]]),
        ([1, 5], [[1], [4], [1]]),
    ],
)
def test_a_slice_has_as_many_elements_as_it_may(partitions: list[int], slices: list[list[int]]) -> None:
    """A topic is an element, and each of its partitions; a topic that is cut itself has slices of its own."""
    with patch.object(cutting, "SLICE_ELEMENTS", 4):
        found = slices_of(cutter(schema("ListOffsetsRequest"), 1, ("topics", "partitions")), offsets(*partitions))
    topics = [ListOffsetsRequest.decode(data, version=1).topics for data, _ in found]
    assert [[len(each.partitions) for each in slice_] for slice_ in topics] == slices


def test_a_slice_has_a_limit_of_bytes_too() -> None:
    data = bytes(DescribeGroupsRequest(version=0, groups=["x" * 100] * 5).encode())
    with patch.object(cutting, "_SLICE_BYTES", 204):
        slices = slices_of(cutter(schema("DescribeGroupsRequest"), 0, ("groups",)), data)
    assert [len(DescribeGroupsRequest.decode(each, version=0).groups) for each, _ in slices] == [2, 2, 1]


def test_reading_yields_each_element_and_ends_with_their_number() -> None:
    yielded, (_, _, number) = read_whole(
        cutter(schema("ListOffsetsRequest"), 1, ("topics", "partitions")), offsets(2, 3)
    )
    assert (sum(yielded), number) == (7, 8), "the message is one itself"


@pytest.mark.parametrize("too_many", [False, True])
def test_one_row_has_a_limit_of_elements(too_many: bool) -> None:
    topics = cutter(schema("ListOffsetsRequest"), 1, ("topics",))
    reading = topics.cut(offsets(MOST + too_many), 0, MOST)
    if too_many:
        with pytest.raises(TooManyElementsError):
            list(reading)
    else:
        assert list(reading) == [1 + MOST]


@pytest.mark.parametrize("version", [0, 5])
def test_more_rows_than_bytes_are_refused_before_they_are_read(version: int) -> None:
    data = b"\x7f" if version else struct.pack(">i", 126)
    reading = cutter(schema("DescribeGroupsRequest"), version, ("groups",)).cut(data + bytes(125), 0, MOST)
    with pytest.raises(ValueError, match="announces 126 elements, with 125 bytes left"):
        next(reading)


@pytest.mark.parametrize("errors", [(0, 5, 0), (5, 0, 0), (0, 0, 5), (0, 0, 0)])
def test_a_row_in_several_slices_has_the_error_of_any(errors: tuple[int, ...]) -> None:
    result = DescribeConfigsResponse.DescribeConfigsResult
    joiner = Joiner(DescribeConfigsResponse.schema, 1, ("results", "configs"))
    for number, error in enumerate(errors):
        configs = [result.DescribeConfigsResourceResult(name=f"n{number}", value="", config_source=1, synonyms=[])]
        row = result(error_code=error, error_message="", resource_type=2, resource_name="t", configs=configs)
        joiner.add(DescribeConfigsResponse(results=[row]), (0,))
    rows_bytes, (_, pieces) = joiner.size_bytes, joiner.finish()
    whole = b"".join(pieces)
    assert rows_bytes == len(whole) - 20, "of the message 8 bytes are no rows, of the row 12 are beside the list"
    read = client("DescribeConfigsResponse").decode(whole, version=1)
    (joined,) = read.results
    assert (joined.error_code, [each.name for each in joined.configs]) == (max(errors), ["n0", "n1", "n2"])


def test_of_what_is_beside_the_rows_each_element_stays_once() -> None:
    broker, topic = MetadataResponse.MetadataResponseBroker, MetadataResponse.MetadataResponseTopic
    joiner = Joiner(MetadataResponse.schema, 9, ("topics",))
    for number, known in enumerate([(), (1, 2), (2, 3), ()]):
        brokers = [broker(node_id=node, host="h", port=1) for node in known]
        topics = [topic(name=f"t{number}", partitions=[])]
        joiner.add(MetadataResponse(cluster_id="c", brokers=brokers, topics=topics), ())
    read = client("MetadataResponse").decode(b"".join(joiner.finish()[1]), version=9)
    assert [each.node_id for each in read.brokers] == [1, 2, 3]
    assert [each.name for each in read.topics] == ["t0", "t1", "t2", "t3"]
