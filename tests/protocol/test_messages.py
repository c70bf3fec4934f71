"""Requests and responses against kafka-python's own client side, and against bytes that nobody should send."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

import pytest
from client_messages import request_bytes
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from loadwise.coordinator import turns
from loadwise.protocol import kafka_messages as ours
from loadwise.protocol.errors import MalformedBytesError, RequestError, UnknownApiError, UnsupportedVersionError
from loadwise.protocol.messages import (
    Api,
    body_in_turns,
    decode_request,
    encode_response,
    frame_of,
    served,
)

HEARTBEAT = Api.of("Heartbeat")
JOIN = Api.of("JoinGroup")
METADATA = Api.of("Metadata", max_version=12)
VERSIONS = Api.of("ApiVersions")
APIS = served([HEARTBEAT, JOIN, METADATA, VERSIONS])


def frame(request: Any, correlation_id: int = 7, client_id: str | None = "c") -> bytes:
    """A request as a client sends it, without its size."""
    return request_bytes(request, correlation_id, client_id)


def join(version: int) -> Any:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\x00\x01")
    return JoinGroupRequest(
        version=version,
        group_id="g",
        session_timeout_ms=10,
        rebalance_timeout_ms=20,
        member_id="m",
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[protocol],
        reason="ü",
    )


@pytest.mark.parametrize("version", range(JOIN.min_version, JOIN.max_version + 1))
def test_a_request_is_read_in_every_version(version: int) -> None:
    request = decode_request(frame(join(version), 99, "me"), APIS)
    assert (request.api, request.version, request.correlation_id, request.client_id) == (JOIN, version, 99, "me")
    assert (request.body.group_id, request.body.session_timeout_ms, request.body.member_id) == ("g", 10, "m")
    assert [(each.name, each.metadata) for each in request.body.protocols] == [("range", b"\x00\x01")]


def test_a_client_may_have_no_id() -> None:
    assert decode_request(frame(HeartbeatRequest(version=4, group_id="g"), client_id=None), APIS).client_id is None


def test_unknown_tagged_fields_are_skipped() -> None:
    # Header v2: after the client id come tagged fields; two that nobody knows, with 1 and 0 bytes.
    header = struct.pack(">hhih", 12, 4, 7, -1) + bytes([2, 50, 1, 0xFF, 51, 0])
    body = b"\x02g" + struct.pack(">i", 5) + b"\x02m" + b"\x00" + bytes([1, 60, 2, 0xAA, 0xBB])
    request = decode_request(header + body, APIS)
    assert (request.body.group_id, request.body.generation_id, request.body.member_id) == ("g", 5, "m")


@pytest.mark.parametrize("version", range(METADATA.min_version, METADATA.max_version + 1))
def test_a_response_reads_as_the_client_reads_it_whole_or_from_a_kept_body(version: int) -> None:
    topic = ours.MetadataResponse.MetadataResponseTopic
    partition = topic.MetadataResponsePartition(
        error_code=0,
        partition_index=3,
        leader_id=1,
        leader_epoch=0,
        replica_nodes=[1],
        isr_nodes=[1],
        offline_replicas=[],
    )

    def response() -> Any:
        return ours.MetadataResponse(
            brokers=[],
            cluster_id="c",
            topics=[topic(error_code=0, name="t", is_internal=False, partitions=[partition])],
        )

    whole = bytes(encode_response(response(), version, 42))
    kept = frame_of(
        turns.whole(body_in_turns(response(), version)), 42, flexible=version in ours.MetadataResponse.schema.flexible
    )
    assert b"".join(kept) == whole
    assert struct.unpack_from(">i", whole)[0] == len(whole) - 4
    read = MetadataResponse.decode(whole[4:], version=version, header=True)
    assert read.header.correlation_id == 42
    assert [(each.name, each.partitions[0].partition_index) for each in read.topics] == [("t", 3)]


def test_the_header_of_api_versions_has_no_tagged_fields_ever() -> None:
    whole = bytes(encode_response(ours.ApiVersionsResponse(error_code=0, api_keys=[]), 3, 42))
    assert whole[4:] == struct.pack(">i", 42) + struct.pack(">h", 0) + b"\x01" + struct.pack(">i", 0) + b"\x00"


# ---- bytes that nobody should send ----

GOOD = frame(join(9))


def test_what_is_not_served_is_told_apart() -> None:
    with pytest.raises(UnknownApiError, match="API key 77"):
        decode_request(struct.pack(">hhih", 77, 0, 1, -1), APIS)
    with pytest.raises(UnsupportedVersionError, match="Heartbeat v9 is not served here, only v0 to v4") as caught:
        decode_request(struct.pack(">hhih", 12, 9, 1234, -1), APIS)
    assert (caught.value.api_key, caught.value.correlation_id) == (12, 1234)
    with pytest.raises(UnsupportedVersionError):
        decode_request(struct.pack(">hhih", 12, -1, 1, -1), APIS)


@pytest.mark.parametrize("length", range(len(GOOD)))
def test_a_request_that_ends_early_is_refused(length: int) -> None:
    with pytest.raises(RequestError):
        decode_request(GOOD[:length], APIS)


def test_a_string_at_the_end_that_is_cut_short_is_refused() -> None:
    # kafka-python itself reads "memb" here and says nothing.
    good = frame(HeartbeatRequest(version=0, group_id="g", generation_id=1, member_id="member"))
    assert decode_request(good, APIS).body.member_id == "member"
    with pytest.raises(RequestError, match="ends early"):
        decode_request(good[:-2], APIS)


def test_bytes_behind_a_request_are_ignored_as_kafka_does() -> None:
    assert decode_request(GOOD + b"\x00\x00", APIS) == decode_request(GOOD, APIS)


@pytest.mark.parametrize(
    ("request_object", "path"),
    [
        (HeartbeatRequest(version=4, group_id=None, member_id="m"), "group_id"),
        (
            JoinGroupRequest(
                version=9,
                group_id="g",
                member_id="m",
                protocol_type="consumer",
                protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=None)],
            ),
            "protocols.metadata",
        ),
        (JoinGroupRequest(version=9, group_id="g", member_id="m", protocol_type="p", protocols=None), "protocols"),
        (MetadataRequest(version=9, topics=[MetadataRequest.MetadataRequestTopic(name=None)]), "topics.name"),
    ],
)
def test_null_is_refused_where_the_schema_forbids_it(request_object: Any, path: str) -> None:
    with pytest.raises(RequestError, match=rf"null in {path},"):
        decode_request(frame(request_object), APIS)


def test_bad_utf_8_is_replaced_as_kafka_does() -> None:
    bad = GOOD.replace("ü".encode(), b"\xff\xff")
    assert bad != GOOD
    assert decode_request(bad, APIS).body.reason == "\ufffd\ufffd"


@given(position=st.integers(0, len(GOOD) - 1), value=st.integers(0, 255))
def test_a_changed_byte_gives_a_request_or_our_error(position: int, value: int) -> None:
    changed = bytearray(GOOD)
    changed[position] = value
    with contextlib.suppress(MalformedBytesError):
        decode_request(bytes(changed), APIS)


@given(api=st.sampled_from(list(APIS.values())), data=st.data())
def test_random_bytes_give_a_request_or_our_error(api: Api, data: st.DataObject) -> None:
    version = data.draw(st.integers(api.min_version, api.max_version))
    body = data.draw(st.binary(max_size=60))
    with contextlib.suppress(MalformedBytesError):
        decode_request(struct.pack(">hhih", api.key, version, 1, -1) + body, APIS)


@pytest.mark.parametrize("tail", [b"", b"\x01"])
def test_a_length_that_does_not_end_is_refused_at_once(tail: bytes) -> None:
    # kafka-python's own decoder takes a time that grows with the square of the bytes.
    endless = struct.pack(">hhih", 12, 4, 1, -1) + b"\x00" + b"\xff" * 1000 + tail
    with pytest.raises(RequestError, match="longer than 5 bytes"):
        decode_request(endless, APIS)


def test_tagged_fields_do_not_read_past_the_end() -> None:
    good = struct.pack(">hhih", 12, 4, 1, -1) + b"\x00" + b"\x02g" + struct.pack(">i", 5) + b"\x02m\x00"
    with pytest.raises(RequestError, match="3 bytes announced, 2 left"):
        decode_request(good + bytes([1, 60, 3, 0xAA, 0xBB]), APIS)
