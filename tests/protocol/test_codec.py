"""The generated codec against kafka-python's own, byte for byte and field for field: every message, every version.

kafka-python's decoders and encoders are made from the same schemas by other code. What they leave open (negative
counts, long strings, bad UTF-8) is held against what Apache Kafka 4.3 does, as its generated classes are written.
"""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from any_message import as_ours, client, message, theirs_name
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer import JoinGroupRequest, OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest
from seeds import examples

from loadwise.coordinator.turns import whole
from loadwise.protocol import kafka_messages
from loadwise.protocol.decoding import AT_ONCE, decoder, decoder_in_turns, varint
from loadwise.protocol.encoding import encoder, encoder_in_turns
from loadwise.protocol.encoding import varint as varint_bytes
from loadwise.protocol.errors import TooManyElementsError
from loadwise.protocol.schemas import _message, names, schema
from loadwise.protocol.structs import Struct

MANY = 1_000_000
REFUSALS = (ValueError, IndexError, struct.error)


def is_same(ours: Any, theirs: Any) -> bool:
    """Whether our message has what kafka-python's has, in all fields of all versions."""
    if isinstance(ours, Struct):
        return all(
            is_same(getattr(ours, name), getattr(theirs, theirs_name(name, theirs))) for name in ours.schema.fields
        )
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(is_same, ours, theirs))
    return bool(ours == theirs)


@pytest.mark.parametrize("name", names())
@examples(2)
@given(data=st.data())
def test_every_version_of_every_message(name: str, data: st.DataObject) -> None:
    """One test: to make a message takes longer than to read and write it."""
    theirs = client(name)
    for version in schema(name).versions:
        made = data.draw(message(theirs, version))
        encoded = bytes(made.encode(version=version))
        is_read_and_written_as_kafka_python_does(name, version, made, encoded)
        is_refused_or_read_whole_where_it_was_tampered_with(name, version, bytearray(encoded), data)
        is_refused_where_it_ends_early(name, version, encoded, data)


def is_read_and_written_as_kafka_python_does(name: str, version: int, made: Any, theirs: bytes) -> None:
    ours, end = decoder(schema(name), version)(theirs, 0)
    assert end == len(theirs)
    # Not what was made: kafka-python reads a tagged field that is null as one that was not sent.
    # The base class's decode: that of ApiVersions reads v0 where it finds an error.
    assert is_same(ours, ApiMessage.decode.__func__(client(name), theirs, version=version))
    assert b"".join(encoder(schema(name), version)(as_ours(made, getattr(kafka_messages, name)))) == theirs
    assert b"".join(encoder(schema(name), version)(ours)) == theirs
    in_turns = whole(decoder_in_turns(schema(name), version, ())(theirs, 0, MANY, MANY))
    assert in_turns[1] == end
    assert b"".join(whole(encoder_in_turns(schema(name), version)(in_turns[0]))) == theirs


def is_refused_or_read_whole_where_it_was_tampered_with(
    name: str, version: int, good: bytearray, data: st.DataObject
) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        if good:
            good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del good[data.draw(st.integers(0, len(good))) :]
    in_turns = decoder_in_turns(schema(name), version, ())(bytes(good), 0, AT_ONCE, AT_ONCE)
    try:
        ours, end = decoder(schema(name), version)(bytes(good), 0)
    except REFUSALS as refused:
        with pytest.raises(type(refused)):
            whole(in_turns)
        return
    assert whole(in_turns)[1] == end
    assert end <= len(good)
    again = b"".join(encoder(schema(name), version)(ours))
    read, end = decoder(schema(name), version)(again, 0)
    # By what it is written as: a number that was tampered with may be NaN, which equals nothing.
    assert (end, b"".join(encoder(schema(name), version)(read))) == (len(again), again)


def is_refused_where_it_ends_early(name: str, version: int, good: bytes, data: st.DataObject) -> None:
    if good:
        with pytest.raises(REFUSALS):
            decoder(schema(name), version)(good[: data.draw(st.integers(0, len(good) - 1))], 0)


@given(st.integers(0, 2**31 - 1))
def test_variable_length_integers_come_back(value: int) -> None:
    data = varint_bytes(value)
    assert varint(b"\xff" + data, 1) == (value, 1 + len(data))


def test_a_variable_length_integer_ends_after_five_bytes() -> None:
    assert varint(b"\xff\xff\xff\xff\x0f", 0) == (-1, 5)
    with pytest.raises(ValueError, match="longer than 5 bytes"):
        varint(b"\x80\x80\x80\x80\x80\x01", 0)


# ---- where kafka-python leaves it open, as Apache Kafka has it ----


def joins(version: int, **changes: Any) -> bytes:
    fields = {"group_id": "g", "member_id": "m", "protocol_type": "consumer", "protocols": []}
    return bytes(JoinGroupRequest(version=version, **{**fields, **changes}).encode())


def test_a_negative_count_is_null_and_null_is_refused_where_it_is_not_allowed() -> None:
    empty = bytes(MetadataRequest(version=1, topics=[]).encode())
    assert empty == struct.pack(">i", 0)
    body, _ = decoder(schema("MetadataRequest"), 1)(struct.pack(">i", -5), 0)
    assert body.topics is None
    with pytest.raises(ValueError, match="null in topics"):
        decoder(schema("MetadataRequest"), 0)(struct.pack(">i", -5), 0)


def test_a_string_of_a_flexible_version_has_a_limit_too() -> None:
    longest, too_long = "x" * 0x7FFF, "x" * 0x8000
    body, _ = decoder(schema("JoinGroupRequest"), 9)(joins(9, group_id=longest), 0)
    assert body.group_id == longest
    with pytest.raises(ValueError, match="ends early"):
        decoder(schema("JoinGroupRequest"), 9)(joins(9, group_id=too_long), 0)
    for version in (0, 9):
        assert encoder(schema("JoinGroupResponse"), version)(kafka_messages.JoinGroupResponse(leader=longest))
        with pytest.raises(ValueError, match="too long to be written"):
            encoder(schema("JoinGroupResponse"), version)(kafka_messages.JoinGroupResponse(leader=too_long))


def test_arrays_of_ids_are_written_as_their_bytes() -> None:
    """No message of a client has one yet; brokers' own do."""
    made = _message(["IdsRequest 0 0-1 flexible 1+", "  Ids []uuid 0+"])
    ids = [UUID(int=1), UUID(int=2**127)]
    both = b"".join(each.bytes for each in ids)
    for version, written in ((0, b"\x00\x00\x00\x02" + both), (1, b"\x03" + both + b"\x00")):
        assert b"".join(encoder(made, version)(SimpleNamespace(ids=ids))) == written
        assert decoder(made, version)(written, 0)[0].ids == ids


def test_bad_utf_8_is_replaced_as_java_does() -> None:
    body, _ = decoder(schema("HeartbeatRequest"), 0)(b"\x00\x02\xff\xfe" + struct.pack(">i", 1) + b"\x00\x01m", 0)
    assert (body.group_id, body.member_id) == ("\ufffd\ufffd", "m")


def test_there_are_no_more_elements_than_bytes() -> None:
    with pytest.raises(ValueError, match="announces 2147483647 elements, with 0 bytes left"):
        decoder(schema("MetadataRequest"), 1)(struct.pack(">i", 2**31 - 1), 0)


@pytest.mark.parametrize(("count", "partitions"), [(AT_ONCE, 0), (10, AT_ONCE // 10 - 1)])
def test_elements_of_all_arrays_count_as_read_at_once(count: int, partitions: int) -> None:
    """Structs, and numbers, which are read in one go."""
    for version in (1, 6):  # the later one has tagged fields
        topics = [OffsetFetchRequest.OffsetFetchRequestTopic(str(topic), [7] * partitions) for topic in range(count)]
        data = bytes(OffsetFetchRequest(version=version, group_id="g", topics=topics).encode())
        body, _ = decoder(schema("OffsetFetchRequest"), version)(data, 0)
        assert sum(1 + len(topic.partition_indexes) for topic in body.topics) == AT_ONCE
        topics[0].partition_indexes.append(8)
        data = bytes(OffsetFetchRequest(version=version, group_id="g", topics=topics).encode())
        with pytest.raises(TooManyElementsError):
            decoder(schema("OffsetFetchRequest"), version)(data, 0)


def test_elements_of_one_row_and_beside_the_rows_have_a_limit_of_their_own() -> None:
    row = OffsetFetchRequest.OffsetFetchRequestTopic

    def read(*sizes: int) -> Any:
        topics = [row(str(number), [7] * size) for number, size in enumerate(sizes)]
        data = bytes(OffsetFetchRequest(version=7, group_id="g", topics=topics).encode())
        return whole(decoder_in_turns(schema("OffsetFetchRequest"), 7, rows)(data, 0, 20, 5))[0]

    rows: tuple[str, ...] = ("topics",)
    assert [len(each.partition_indexes) for each in read(5, 5, 4).topics] == [5, 5, 4]
    for sizes in [(1, 6), (5, 5, 5, 5)]:  # a large row, and too many in all
        with pytest.raises(TooManyElementsError):
            read(*sizes)
    rows = ("topics", "partition_indexes")
    assert len(read(19).topics[0].partition_indexes) == 19
    rows = ()
    with pytest.raises(TooManyElementsError):
        read(2, 2)


# ---- light messages ----


def test_a_light_message_has_the_defaults_of_its_schema() -> None:
    response = kafka_messages.SyncGroupResponse()
    assert (response.error_code, response.protocol_type, response.assignment) == (0, None, b"")
    with pytest.raises(TypeError, match="unexpected keyword"):
        kafka_messages.SyncGroupResponse(error=1)


def test_structs_inside_have_kafkas_names() -> None:
    topic = kafka_messages.MetadataResponse.MetadataResponseTopic
    one = topic(name="t", partitions=[topic.MetadataResponsePartition(partition_index=1)])
    assert one == topic(name="t", partitions=[topic.MetadataResponsePartition(partition_index=1)])
    assert one != topic(name="u")
    assert "name='t'" in repr(one)
