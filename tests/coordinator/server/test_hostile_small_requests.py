"""Small requests that could cost much: a name again and again, thousands of topics, records that become gigabytes."""

from __future__ import annotations

import gzip
import struct
from dataclasses import replace

import client_messages
import pytest
from client_messages import client_request, request_bytes
from kafka.record.util import calc_crc32c
from peers import join
from record_batches import batch
from wires import Wire, only

from loadwise.coordinator.apis import create_partitions_37 as create_partitions_api
from loadwise.coordinator.apis import create_topics_19 as create_topics_api
from loadwise.coordinator.apis import describe_configs_32 as configs_api
from loadwise.coordinator.apis import list_offsets_2 as list_offsets_api
from loadwise.coordinator.apis import metadata_3 as metadata_api
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.handling import named_twice
from loadwise.protocol.batches import HEADER_BYTES
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.record_times import ReadingBudget


def test_a_group_that_is_named_often_is_described_as_often_as_all_members_fit() -> None:
    wire = Wire()
    wire.cluster.settings = replace(wire.cluster.settings, groups=GroupLimits(max_members=5))
    first_join = join("new")
    wire.send(request_bytes(first_join))
    for number in range(2):
        request = client_request(
            "ConsumerGroupHeartbeat", 1, group_id="modern", member_id=f"m{number}", member_epoch=0,
            rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[],
        )  # fmt: skip
        assert wire.exchange(request).error_code == 0
    classic = wire.ask("DescribeGroups", 5, groups=["new"] * 200)
    assert [len(each.members) for each in classic.groups] == [1] * 5 + [0] * 195
    assert {each.error_code for each in classic.groups[5:]} == {ErrorCode.INVALID_REQUEST}
    described = wire.ask("ConsumerGroupDescribe", 1, group_ids=["modern"] * 200)
    assert [len(each.members) for each in described.groups] == [2, 2] + [0] * 198
    assert {each.error_code for each in described.groups[2:]} == {ErrorCode.INVALID_REQUEST}


def test_one_answer_has_room_for_so_many_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configs_api, "_MOST_ROWS", 1)
    resources = [{"resource_type": 4, "resource_name": "1", "configuration_keys": None}] * 3
    results = Wire().ask("DescribeConfigs", 4, resources=resources).results
    assert [(each.error_code, bool(each.configs)) for each in results] == [(0, True), (42, False), (42, False)]
    assert "ask for fewer resources" in results[1].error_message


def test_a_group_with_many_offsets_is_told_again_and_again_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_twice, "_MOST_REPEATED", 3)
    wire = Wire()
    answered = wire.ask("OffsetFetch", 8, groups=[{"group_id": "g", "topics": None}] * 200, require_stable=False)
    assert [len(each.topics) for each in answered.groups] == [1] * 4 + [0] * 196
    assert {each.error_code for each in answered.groups[4:]} == {ErrorCode.INVALID_REQUEST}
    few = [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}] * 200
    answered = wire.ask("OffsetFetch", 8, groups=few, require_stable=False)
    assert {each.error_code for each in answered.groups} == {0}, "who names partitions sends as much as it gets"


def test_a_share_group_that_is_named_often_is_told_again_and_again_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(named_twice, "_MOST_REPEATED", 6)
    wire = Wire()
    answer = wire.ask(
        "ShareGroupHeartbeat", 1, group_id="s", member_id="m", member_epoch=0, subscribed_topic_names=["t"]
    )
    assert answer.error_code == 0
    group = client_messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    topic = {"topic_name": "t", "partitions": [0]}

    def answered(row: group) -> list[group]:
        return wire.ask("DescribeShareGroupOffsets", 1, groups=[row] * 200).groups

    rows = answered({"group_id": "s", "topics": None})
    assert [len(each.topics) for each in rows] == [1] * 4 + [0] * 196, "the group has two partitions"
    assert {each.error_code for each in rows[4:]} == {ErrorCode.INVALID_REQUEST}
    rows = answered({"group_id": "s", "topics": [topic]})
    assert {each.error_code for each in rows} == {0}, "who names partitions sends as much as it gets"


def test_a_partition_with_producers_is_described_again_and_again_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_twice, "_MOST_REPEATED", 3)
    wire = Wire()
    log = wire.cluster.topics.log("t", 0)
    assert log is not None
    log.append(batch([b"x"], producer=(7, 0, 0)))
    answered = wire.ask("DescribeProducers", 0, topics=[{"name": "t", "partition_indexes": [0] * 200 + [1] * 200}])
    rows = only(answered.topics).partitions
    assert [len(each.active_producers) for each in rows] == [1] * 4 + [0] * 396
    assert [each.error_code for each in rows] == [0] * 4 + [ErrorCode.INVALID_REQUEST] * 196 + [0] * 200


def test_a_transaction_with_partitions_is_described_again_and_again_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(named_twice, "_MOST_REPEATED", 3)
    wire = Wire()
    who = wire.ask("InitProducerId", 4, transactional_id="x", transaction_timeout_ms=1000)
    added = {"transactional_id": "x", "producer_id": who.producer_id, "producer_epoch": who.producer_epoch}
    topics = [{"name": "t", "partitions": [0]}]
    wire.ask("AddPartitionsToTxn", 3, **{f"v3_and_below_{k}": v for k, v in {**added, "topics": topics}.items()})
    rows = wire.ask("DescribeTransactions", 0, transactional_ids=["x"] * 200).transaction_states
    assert [len(each.topics) for each in rows] == [1] * 4 + [0] * 196
    assert {each.error_code for each in rows[4:]} == {ErrorCode.INVALID_REQUEST}


def test_a_transaction_that_is_named_often_with_many_partitions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_twice, "_MOST_REPEATED", 10)
    fields = {"transactional_id": "x", "producer_id": 1, "producer_epoch": 0, "verify_only": False}
    large = {**fields, "topics": [{"name": "t", "partitions": [0, 1]}]}
    small = {**fields, "topics": []}
    answers = [Wire().ask("AddPartitionsToTxn", 4, transactions=[large, *[small] * times]) for times in (3, 4)]
    assert [each.error_code for each in answers] == [0, ErrorCode.INVALID_REQUEST]


# ---- thousands of topics ----


def test_one_request_for_metadata_makes_so_many_topics_and_the_next_ones_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata_api, "MAX_NEW_PARTITIONS", 4)
    wire = Wire()
    wanted = [{"name": f"new{index}"} for index in range(10)]
    errors = [[each.error_code for each in wire.ask("Metadata", 9, topics=wanted).topics] for _ in range(3)]
    assert errors == [[0] * 4 + [3] * 6, [0] * 8 + [3] * 2, [0] * 10]


def test_a_request_for_too_many_partitions_is_refused_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for api in (create_topics_api, create_partitions_api):
        monkeypatch.setattr(api, "MAX_NEW_PARTITIONS", 4)
    wire = Wire()

    def create(*counts: int) -> list[int]:
        topics = [
            {"name": f"new{index}", "num_partitions": count, "replication_factor": 1}
            for index, count in enumerate(counts)
        ]
        answer = wire.ask("CreateTopics", 5, topics=topics, timeout_ms=1, validate_only=False)
        return [each.error_code for each in answer.topics]

    assert create(2, 3) == [ErrorCode.POLICY_VIOLATION] * 2
    assert create(3, 1) == [0, 0]

    def grow(**counts: int) -> list[int]:
        topics = [{"name": name, "count": count} for name, count in counts.items()]
        answer = wire.ask("CreatePartitions", 2, topics=topics, timeout_ms=1, validate_only=False)
        return [each.error_code for each in answer.results]

    assert grow(new0=6, new1=3) == [ErrorCode.POLICY_VIOLATION] * 2
    assert grow(new0=5, new1=3) == [0, 0]


def test_answers_about_topics_are_kept_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_api, "_MAX_KEPT_BYTES", 500)
    wire = Wire()
    for index in range(50):
        wanted = [{"name": f"new{index}-{number}"} for number in range(5)]
        assert len(wire.ask("Metadata", 9, topics=wanted).topics) == 5
        kept = metadata_api._ENCODED[wire.cluster.topics].values()
        assert len(kept) == 1 or sum(len(each.data) for each in kept) <= 500


# ---- records that are far more than their bytes ----


def claiming(records: bytes, count: int, timestamp: int, *, codec: int = 0) -> bytes:
    """A batch with the right CRC, whose header claims a number of records and their timestamp."""
    packed = gzip.compress(records) if codec else records
    head = bytearray(batch([b"x"]))[:HEADER_BYTES]
    struct.pack_into(">i", head, 8, HEADER_BYTES - 12 + len(packed))
    struct.pack_into(">h", head, 21, codec)
    struct.pack_into(">i", head, 23, count - 1)
    struct.pack_into(">qq", head, 27, 0, timestamp)
    struct.pack_into(">i", head, 57, count)
    struct.pack_into(">I", head, 17, calc_crc32c(bytes(head[21:]) + packed))
    return bytes(head) + packed


RECORD = bytes([12, 0, 0, 0, 1, 0, 0])


@pytest.mark.parametrize("codec", [0, 1], ids=["plain", "gzip"])
def test_a_request_looks_at_so_many_records_in_all_its_partitions(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their headers claim a late timestamp, so that every record is looked at: of so many it is not put right."""
    looked_at = ReadingBudget
    monkeypatch.setattr(list_offsets_api, "ReadingBudget", lambda: looked_at(bytes_left=10_000, records_left=1_500))
    wire = Wire()
    wire.cluster.topics.create("late", 3)
    for number in range(3):
        log = wire.cluster.topics.log("late", number)
        assert log is not None
        assert log.append(claiming(RECORD * 1_001, 1_001, 9_000, codec=codec)).error is ErrorCode.NONE

    def ask(*numbers: int, timestamp: int = 8_000) -> list[int]:
        rows = [{"partition_index": each, "timestamp": timestamp} for each in numbers]
        (answered,) = wire.ask("ListOffsets", 5, topics=[{"name": "late", "partitions": rows}]).topics
        return [each.error_code for each in answered.partitions]

    assert ask(0, 1, 2) == [0, ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.OFFSET_NOT_AVAILABLE]
    assert ask(1) == ask(2) == [0], "asked for again, each is answered"
    log = wire.cluster.topics.log("late", 0)
    assert log is not None
    log.append(claiming(RECORD * 1_001, 1_001, 9_000, codec=codec))
    assert ask(0) == [ErrorCode.CORRUPT_MESSAGE], "asking for it again would not help"


def test_an_answer_names_so_many_bad_records() -> None:
    wire = Wire()
    log = wire.cluster.topics.log("t", 1)
    assert log is not None
    after_max_ms = log.config.timestamp_after_max_ms
    late = claiming(RECORD * 50_000, 50_000, after_max_ms + 2, codec=1)
    late = late[:27] + struct.pack(">q", after_max_ms + 2) + late[35:]
    late = late[:17] + struct.pack(">I", calc_crc32c(late[21:])) + late[21:]
    refused = log.append(late, now_ms=1)
    assert (refused.error, len(refused.bad_records)) == (ErrorCode.INVALID_TIMESTAMP, 1_000)


def test_many_topics_are_deleted_in_one_look_at_the_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Wire()
    for index in range(50):
        wire.cluster.topics.create(f"new{index}", 1)
    looked_at: list[str] = []
    of = wire.cluster.groups.offsets.of
    monkeypatch.setattr(wire.cluster.groups.offsets, "of", lambda group_id: looked_at.append(group_id) or of(group_id))
    names = [f"new{index}" for index in range(50)]
    deleted = wire.ask("DeleteTopics", 5, topic_names=[*names, "t"], timeout_ms=1)
    assert {each.error_code for each in deleted.responses} == {0}
    assert len(looked_at) <= 2, "once to find its offsets, once to delete them"
    assert not of("g")


def test_a_name_that_grows_when_it_is_decoded_keeps_nobody_from_reading_the_offsets_topic(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Bytes that are no UTF-8 become U+FFFD, which takes three bytes; Kafka's records have room for 32,767."""
    wire = Wire()
    wire.cluster.offsets_topic.make()
    row = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}

    def commit_to(group_id: str) -> int:
        request = client_request(
            "OffsetCommit", 8, group_id=group_id, member_id="", topics=[{"name": "t", "partitions": [row]}]
        )
        (answer,) = wire.send(request_bytes(request).replace(b"Z" * 20_000, b"\xff" * 20_000))
        error: int = answer.response.topics[0].partitions[0].error_code
        return error

    def records() -> int:
        found = wire.cluster.topics.get("__consumer_offsets")
        assert found is not None
        return sum(each.log.end_offset for each in found.partitions)

    assert [commit_to("Z" * 20_000), commit_to("last")] == [0, 0]
    wire.cluster.offsets_topic.begin()
    assert records() == len({"g", "last"})
    assert [commit_to("Z" * 20_000), commit_to("last")] == [0, 0], "while somebody reads it, too"
    assert records() == len({"g", "last", "last again"})
    assert "60,000 bytes" in caplog.text
