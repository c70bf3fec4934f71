"""Answers that Apache Kafka 4.3.1 gives to requests that clients seldom send: each test runs on it and on ours.

Logins are in test_login_same_as_kafka.py, and what needs rights in test_access_same_as_kafka.py.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from client_messages import client_request
from consumer_session import ConsumerSession
from kafka.record.util import calc_crc32c
from record_batches import batch
from topics import WAIT_S, until

from loadwise.coordinator import Coordinator
from loadwise.protocol.consumer import Subscription
from loadwise.protocol.error_codes import ErrorCode

_CRC, _MAX_TIMESTAMP = slice(17, 21), slice(35, 43)
_NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}
"""What clients try again; the last one is Kafka's answer to a producer whose transaction it cannot verify yet."""


@pytest.fixture(params=["ours", pytest.param("kafka", marks=pytest.mark.kafka)])
def broker(request: pytest.FixtureRequest) -> Iterator[ConsumerSession]:
    if request.param == "kafka":
        yield from session_at(request.getfixturevalue("apache_kafka"))
    else:
        with Coordinator().in_thread() as coordinator:
            yield from session_at(coordinator.bootstrap_servers)


def session_at(address: str) -> Iterator[ConsumerSession]:
    """A session with a topic, and the coordinators of its group and of its transactional id."""
    session = ConsumerSession(address)
    assert session.create_topic() == 0
    session.wait_for_topic()
    until(lambda: listed_by_largest_timestamp(session, 0)[0] == 0)
    for key_type, key in enumerate((session.group, session.topic)):
        request = client_request("FindCoordinator", 4, key_type=key_type, coordinator_keys=[key])
        until(lambda request=request: found(session, request) == 0)
    until(lambda: committed(session, "") == 0)
    yield session
    session.close()


def found(session: ConsumerSession, request: Any) -> int:
    return int(session.exchange(request).coordinators[0].error_code)


def produced(session: ConsumerSession, records: bytes) -> Any:
    data = {"name": session.topic, "partition_data": [{"index": 0, "records": records}]}
    return session.ask("Produce", 9, acks=-1, timeout_ms=60_000, topic_data=[data]).responses[0].partition_responses[0]


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
def test_garbage_is_refused_by_its_length_and_version_first(
    broker: ConsumerSession, records: bytes, error: ErrorCode
) -> None:
    assert produced(broker, records).error_code == error


def test_a_base_offset_other_than_0_is_refused(broker: ConsumerSession) -> None:
    for records in (batch([b"a"]), batch([b"a"], producer=(5, 0, 0))):
        assert produced(broker, struct.pack(">q", 55) + records[8:]).error_code == ErrorCode.INVALID_RECORD


def test_a_repeated_batch_is_answered_with_its_largest_timestamp(broker: ConsumerSession) -> None:
    records = batch([b"a", b"b"], timestamp=1_700_000_000_000, producer=(5, 0, 0))
    answers = [produced(broker, records) for _ in range(2)]
    assert [(each.error_code, each.base_offset, each.log_append_time_ms) for each in answers] == [
        (0, 0, -1),
        (0, 0, 1_700_000_000_001),
    ]


@pytest.mark.parametrize(
    ("metadata_text", "error"), [("é" * 4096, 0), ("é" * 4097, 12), ("😀" * 2048, 0), ("😀" * 2049, 12)]
)
def test_metadata_of_a_commit_is_counted_in_characters_of_java(
    broker: ConsumerSession, metadata_text: str, error: int
) -> None:
    assert committed(broker, metadata_text) == error


def committed(session: ConsumerSession, metadata_text: str) -> int:
    row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": metadata_text}
    request = client_request(
        "OffsetCommit", 8, group_id=session.group, member_id="", topics=[{"name": session.topic, "partitions": [row]}],
    )  # fmt: skip
    return int(session.exchange(request).topics[0].partitions[0].error_code)


def listed_by_largest_timestamp(session: ConsumerSession, isolation_level: int) -> tuple[int, int]:
    found = session.listed_offset(-3, version=8, isolation=isolation_level)
    return found.error_code, found.offset


def test_the_largest_timestamp_in_an_open_transaction_is_not_told_to_readers_of_committed_records(
    broker: ConsumerSession,
) -> None:
    assert produced(broker, batch([b"a"], timestamp=1000)).error_code == 0
    begun = initialized(broker)
    records = batch([b"b"], timestamp=2000, producer=(begun.producer_id, begun.producer_epoch, 0), transactional=True)
    data = {"name": broker.topic, "partition_data": [{"index": 0, "records": records}]}
    fields = {"transactional_id": broker.topic, "acks": -1, "timeout_ms": 60_000, "topic_data": [data]}

    def once() -> Any:
        return broker.ask("Produce", 12, **fields).responses[0].partition_responses[0]

    assert answered(once, lambda answer: answer.error_code).error_code == 0
    assert listed_by_largest_timestamp(broker, 0) == (0, 1)
    assert listed_by_largest_timestamp(broker, 1) == (0, -1)


def initialized(session: ConsumerSession) -> Any:
    """A producer of the transactional id, which has the topic's name."""
    request = client_request("InitProducerId", 4, transactional_id=session.topic, transaction_timeout_ms=60_000)
    return answered(lambda: session.exchange(request), lambda answer: answer.error_code)


def answered(ask: Callable[[], Any], error_of: Callable[[Any], int]) -> Any:
    """The first answer that is not to ask again."""
    deadline = time.monotonic() + WAIT_S
    while error_of(answer := ask()) in _NOT_YET:
        assert time.monotonic() < deadline
    return answer


def begin(session: ConsumerSession, producer_id: int, epoch: int) -> None:
    request = client_request(
        "AddPartitionsToTxn", 3, v3_and_below_transactional_id=session.topic, v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch, v3_and_below_topics=[{"name": session.topic, "partitions": [0]}],
    )  # fmt: skip

    def error_of(answer: Any) -> int:
        return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    assert error_of(answered(lambda: session.exchange(request), error_of)) == 0


def ended(session: ConsumerSession, version: int, producer_id: int, epoch: int, *, commit: bool) -> tuple[int, int]:
    """The error, and the epoch to go on with; -1 before v5."""
    request = client_request(
        "EndTxn",
        version,
        transactional_id=session.topic,
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=commit,
    )
    answer = answered(lambda: session.exchange(request), lambda answer: answer.error_code)
    return answer.error_code, answer.producer_epoch if version >= 5 else -1


def test_an_end_of_a_transaction_one_epoch_behind_is_a_retry_however_it_was_ended(broker: ConsumerSession) -> None:
    first = initialized(broker)
    who, epoch = first.producer_id, initialized(broker).producer_epoch
    assert epoch == first.producer_epoch + 1
    for commit in (True, False):
        assert ended(broker, 5, who, epoch - 1, commit=commit) == (ErrorCode.PRODUCER_FENCED, -1)  # nothing was begun
        begin(broker, who, epoch)
        assert ended(broker, 5, who, epoch - 1, commit=commit) == (ErrorCode.PRODUCER_FENCED, -1)
        assert ended(broker, 4, who, epoch, commit=commit) == (0, -1)
        assert ended(broker, 5, who, epoch - 1, commit=commit) == (0, epoch)
        assert ended(broker, 5, who, epoch - 1, commit=not commit) == (ErrorCode.INVALID_TXN_STATE, -1)
        assert ended(broker, 5, who, epoch - 2, commit=commit) == (ErrorCode.PRODUCER_FENCED, -1)
        assert ended(broker, 4, who, epoch - 1, commit=commit) == (ErrorCode.PRODUCER_FENCED, -1)
        epoch = initialized(broker).producer_epoch


@pytest.mark.parametrize("compression", [0, 1])
@pytest.mark.parametrize("wrong_ms", [-1, 5, 2**60])
def test_a_wrong_largest_timestamp_in_a_header_is_put_right(
    broker: ConsumerSession, wrong_ms: int, compression: int
) -> None:
    now_ms = int(time.time() * 1000)
    right = batch([b"a", b"b"], timestamp=now_ms, compression=compression)
    wrong = bytearray(right)
    wrong[_MAX_TIMESTAMP] = struct.pack(">q", wrong_ms)
    wrong[_CRC] = struct.pack(">I", calc_crc32c(wrong[_CRC.stop :]))
    assert produced(broker, bytes(wrong)).error_code == 0
    kept = records_of(broker)
    assert kept[_MAX_TIMESTAMP] == struct.pack(">q", now_ms + 1)
    assert kept[_CRC.start :] == right[_CRC.start :]


def records_of(session: ConsumerSession) -> bytes:
    row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100_000}
    request = client_request(
        "Fetch", 11, max_wait_ms=10_000, min_bytes=1, max_bytes=100_000,
        topics=[{"topic": session.topic, "partitions": [row]}],
    )  # fmt: skip
    return bytes(session.exchange(request).responses[0].partitions[0].records)


def test_a_classic_member_rebalances_only_when_there_are_new_targets(broker: ConsumerSession) -> None:
    """Another classic member leaves; the targets are made at the heartbeat of a member that speaks KIP-848."""
    broker.first = 0
    broker.make("t", 4)
    metadata_bytes = Subscription(topics=[broker.full("t")]).encode()
    offered = [{"name": "range", "metadata": metadata_bytes}]
    epoch = broker.join_as("!a", "t")[1]
    for number in (0, 1):
        broker.join(protocols=offered)
        broker.join(number, protocols=offered)

    def is_stable() -> bool:
        """All take the steps that there are for them."""
        nonlocal epoch
        epoch = max(broker.beat_as("!a", epoch, owned=True)[1], epoch)
        for number in (0, 1):
            broker.join(number, protocols=offered)
        return bool(broker.describe_as_consumer_group()[0][1] == "Stable")

    until(is_stable)
    assert [broker.beat(number, epoch) for number in (0, 1)] == [0, 0]
    broker.leave((1, None))
    assert [broker.beat(0, epoch) for _ in range(3)] == [0, 0, 0]
    assert broker.beat_as("!a", epoch)[0] == 0
    assert broker.beat(0, epoch) == ErrorCode.REBALANCE_IN_PROGRESS


def rows(*numbers: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"partition_index": number, **fields} for number in numbers]


def no_time(session: ConsumerSession, **fields: Any) -> dict[str, Any]:
    return {"timeout_ms": 0, "topics": [{"name": session.topic, **fields}]}


def reads(session: ConsumerSession, *names: str) -> dict[str, Any]:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    topics = [{"topic": name, "partitions": [partition]} for name in names]
    fields = {"replica_id": -1, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1000, "isolation_level": 2}
    return fields | {"session_id": 0, "session_epoch": -1, "topics": topics, "rack_id": ""}


def commits(session: ConsumerSession) -> dict[str, Any]:
    """Topics without partitions, and one that does not exist twice, between others that do."""
    named = [("x", ()), (session.topic, ()), (session.topic, (0,)), ("x", (0, 0)), (session.topic, (7, 0))]
    topics = [{"name": name, "partitions": rows(*numbers, committed_offset=1)} for name, numbers in named]
    return {"group_id": session.group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}


def deletes(session: ConsumerSession) -> dict[str, Any]:
    topics = [{"name": name, "partitions": rows(*numbers)} for name, numbers in [("x", ()), (session.topic, ())]]
    return {"group_id": session.group, "topics": topics}


def errors(answer: Any, names: Sequence[str] = ()) -> Any:
    """The error codes of an answer and of its rows, after the names of topics: x, or t for another."""
    if isinstance(answer, list | tuple):
        return [errors(each, ("name", "topic")) for each in answer]
    name = next((found for each in names if (found := getattr(answer, each, None)) is not None), None)
    found = [] if name is None else ["x" if name == "x" else "t"]
    found += [answer.error_code] if hasattr(answer, "error_code") else []
    return found + [errors(each) for field in ROWS if (each := getattr(answer, field, None)) is not None]


ROWS = ("topics", "responses", "results", "replica_election_results", "markers", "partitions")
WRONG: dict[str, tuple[str, int, Callable[[ConsumerSession], dict[str, Any]], Any]] = {
    "elections without time": (
        "ElectLeaders", 2, lambda _: {"election_type": 0, "topic_partitions": None, "timeout_ms": 0}, [7, []],
    ),
    "new topics without time": (
        "CreateTopics", 5, lambda it: no_time(it, num_partitions=1, replication_factor=1), [[["t", 7]]],
    ),
    "new partitions without time": ("CreatePartitions", 2, lambda it: no_time(it, count=3), [[["t", 7]]]),
    "deletions without time": (
        "DeleteTopics", 5, lambda it: {"topic_names": [it.topic], "timeout_ms": -1}, [[["t", 7]]],
    ),
    "reassignments without time": (
        "AlterPartitionReassignments", 0,
        lambda it: no_time(it, partitions=rows(0, replicas=None)), [7, [["t", [[7]]]]],
    ),
    "an isolation level that does not exist": (
        "ListOffsets", 9,
        lambda it: {
            "replica_id": -1, "isolation_level": 2,
            "topics": [{"name": name, "partitions": rows(0, 7, timestamp=-9)} for name in (it.topic, "x")],
        },
        [[["t", [[-1], [-1]]], ["x", [[-1], [-1]]]]],
    ),
    "offsets of topics without partitions": (
        "ListOffsets", 1, lambda it: {"replica_id": -1, "topics": [{"name": it.topic, "partitions": []}]}, [[]],
    ),
    "a fetch at an isolation level that does not exist": (
        "Fetch", 12, lambda it: reads(it, it.topic, "x"), [-1, [["t", [[-1]]], ["x", [[-1]]]]],
    ),
    "the same of nothing that exists": ("Fetch", 12, lambda it: reads(it, "x"), [0, [["x", [[3]]]]]),
    "topics without a name and an id": (
        "Metadata", 12,
        lambda it: {"topics": [{"name": None}, {"name": it.topic}], "allow_auto_topic_creation": False},
        [0, [["t", -1, []], ["t", -1, []]]],
    ),
    "commits of what does not exist": (
        "OffsetCommit", 8, commits, [[["x", [[3], [3]]], ["t", [[3], [0], [0]]]]],
    ),
    "deletions of offsets of what does not exist": ("OffsetDelete", 0, deletes, [0, [["x", []]]]),
    "a marker without partitions": (
        "WriteTxnMarkers", 1,
        lambda it: {
            "markers": [
                {"producer_id": 5, "producer_epoch": 0, "transaction_result": True, "coordinator_epoch": 0,
                 "topics": [{"name": it.topic, "partition_indexes": []}]}
            ]
        },
        [[]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_it_answers_wrong_requests_so(broker: ConsumerSession, what: str) -> None:
    api, version, fields, answer = WRONG[what]
    assert errors(broker.ask(api, version, **fields(broker))) == answer
