"""What clients may not do to topics that only brokers write, and what they may not do halfway."""

from __future__ import annotations

import pytest
from client_messages import client_request
from wires import Wire

from loadwise.coordinator.transactions.feature import ClusterTransactions
from loadwise.coordinator.transactions.transaction import TransactionState
from loadwise.protocol.error_codes import ErrorCode

ID = "x"
OFFSETS = "__consumer_offsets"


def begun(wire: Wire) -> tuple[int, int]:
    """A producer with a transactional id."""
    answer = wire.ask("InitProducerId", 4, transactional_id=ID, transaction_timeout_ms=60_000)
    return answer.producer_id, answer.producer_epoch


def end_of(wire: Wire, topic: str) -> list[tuple[int, int]]:
    found = wire.cluster.topics.get(topic)
    assert found is not None
    return [(each.log.start_offset, each.log.end_offset) for each in found.partitions if each.log.end_offset]


@pytest.mark.parametrize(
    ("topic", "error"),
    [(OFFSETS, ErrorCode.INVALID_TOPIC_EXCEPTION), ("compacted", ErrorCode.POLICY_VIOLATION)],
)
def test_records_of_internal_and_of_compacted_topics_are_not_deleted(topic: str, error: ErrorCode) -> None:
    """Mirrors ``ReplicaManager.deleteRecordsOnLocalLog`` and ``Partition.deleteRecordsOnLeader``."""
    wire = Wire()
    wire.cluster.topics.create("compacted", 1, {"cleanup.policy": "compact"})
    wire.cluster.offsets_topic.make()
    wire.cluster.offsets_topic.begin()
    before = end_of(wire, topic)
    partitions = [{"partition_index": 0, "offset": -1}]
    answer = wire.ask("DeleteRecords", 2, topics=[{"name": topic, "partitions": partitions}], timeout_ms=1000)
    (answered,) = answer.topics
    assert [(each.error_code, each.low_watermark) for each in answered.partitions] == [(error, -1)]
    assert end_of(wire, topic) == before


def test_a_producer_adds_no_internal_topic_to_its_transaction() -> None:
    """Mirrors ``KafkaApis.handleAddPartitionsToTxnRequest``; groups are added by AddOffsetsToTxn."""
    wire = Wire()
    wire.cluster.offsets_topic.make()
    producer_id, epoch = begun(wire)
    request = client_request(
        "AddPartitionsToTxn", 3, v3_and_below_transactional_id=ID, v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[{"name": OFFSETS, "partitions": [0]}, {"name": "t", "partitions": [0]}],
    )  # fmt: skip
    answered = wire.exchange(request).results_by_topic_v3_and_below
    errors = [each.partition_error_code for topic in answered for each in topic.results_by_partition]
    assert errors == [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.OPERATION_NOT_ATTEMPTED]
    assert ClusterTransactions.of(wire.cluster).ids.all[ID].state is TransactionState.EMPTY


def test_offsets_of_unknown_topics_alone_begin_no_transaction() -> None:
    """The client has nothing to end then, and would be shut out when the transaction took too long."""
    wire = Wire()
    producer_id, epoch = begun(wire)
    row = {"partition_index": 0, "committed_offset": 3, "committed_metadata": None}
    request = client_request(
        "TxnOffsetCommit", 5, transactional_id=ID, group_id="g", producer_id=producer_id, producer_epoch=epoch,
        member_id="", topics=[{"name": "unknown", "partitions": [row]}],
    )  # fmt: skip
    (answered,) = wire.exchange(request).topics
    assert [each.error_code for each in answered.partitions] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert ClusterTransactions.of(wire.cluster).ids.all[ID].state is TransactionState.EMPTY
