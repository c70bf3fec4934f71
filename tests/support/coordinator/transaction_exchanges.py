"""The APIs of transactions, each asked over a wire in one of its versions: for ``test_every_version.py``."""

from __future__ import annotations

from typing import Any

from client_messages import client_request
from record_batches import batch
from wires import only

from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.transactions.feature import ClusterTransactions
from loadwise.coordinator.transactions.transaction import TransactionState
from loadwise.protocol.error_codes import ErrorCode

ID = "tx"


def state(wire: Any) -> TransactionState:
    found: TransactionState = ClusterTransactions.of(wire.cluster).ids.all[ID].state
    return found


def begun(wire: Any) -> tuple[int, int]:
    """A producer that may begin a transaction."""
    answer = wire.ask("InitProducerId", 5, transactional_id=ID, transaction_timeout_ms=1000)
    assert answer.error_code == 0
    return answer.producer_id, answer.producer_epoch


def writing(wire: Any) -> tuple[int, int]:
    """A producer that has written to partition 1 in a transaction."""
    who = begun(wire)
    data = batch([b"x"], producer=(*who, 0), transactional=True)
    rows = [{"name": "t", "partition_data": [{"index": 1, "records": data}]}]
    answer = wire.ask("Produce", 12, transactional_id=ID, acks=-1, timeout_ms=1, topic_data=rows)
    assert only(only(answer.responses).partition_responses).error_code == 0
    return who


def add_partitions_to_txn(wire: Any, version: int) -> None:
    who = begun(wire)
    topic = {"name": "t", "partitions": [0, 1]}
    asked = {
        "transactional_id": ID, "producer_id": who[0], "producer_epoch": who[1], "verify_only": False,
        "topics": [topic],
    }  # fmt: skip
    answer = wire.ask(
        "AddPartitionsToTxn",
        version,
        transactions=[asked],
        v3_and_below_transactional_id=ID,
        v3_and_below_producer_id=who[0],
        v3_and_below_producer_epoch=who[1],
        v3_and_below_topics=[topic],
    )
    if version >= 4:
        found = only(answer.results_by_transaction)
        assert (answer.error_code, found.transactional_id) == (0, ID)
        results = found.topic_results
    else:
        results = answer.results_by_topic_v3_and_below
    assert [(each.partition_index, each.partition_error_code) for each in only(results).results_by_partition] == [
        (0, 0),
        (1, 0),
    ]
    assert state(wire) is TransactionState.ONGOING


def add_offsets_to_txn(wire: Any, version: int) -> None:
    who = begun(wire)
    answer = wire.ask(
        "AddOffsetsToTxn", version, transactional_id=ID, producer_id=who[0], producer_epoch=who[1], group_id="g"
    )
    assert answer.error_code == 0
    assert only(ClusterTransactions.of(wire.cluster).ids.all[ID].partitions).topic == "__consumer_offsets"


def end_txn(wire: Any, version: int) -> None:
    who = writing(wire)
    answer = wire.ask("EndTxn", version, transactional_id=ID, producer_id=who[0], producer_epoch=who[1], committed=True)
    assert answer.error_code == 0
    if version >= 5:
        assert (answer.producer_id, answer.producer_epoch) == (who[0], who[1] + 1)
    assert state(wire) is TransactionState.COMPLETE_COMMIT
    log = wire.cluster.topics.log("t", 1)
    assert (log.stable_offset, log.end_offset) == (2, 2)


def txn_offset_commit(wire: Any, version: int) -> None:
    who = begun(wire)
    if version < 5:
        reply = wire.ask(
            "AddOffsetsToTxn", 3, transactional_id=ID, producer_id=who[0], producer_epoch=who[1], group_id="g"
        )
        assert reply.error_code == 0
    row = {"partition_index": 0, "committed_offset": 3, "committed_metadata": None}
    request = client_request(
        "TxnOffsetCommit", version, transactional_id=ID, group_id="g", producer_id=who[0], producer_epoch=who[1],
        member_id="", topics=[{"name": "t", "partitions": [row]}],
    )  # fmt: skip
    assert only(only(wire.exchange(request).topics).partitions).error_code == 0
    groups = wire.cluster.groups
    assert groups.offsets.of("g")[Partition("t", 0)].offset == 2, "not before the transaction ends"
    answer = wire.ask("EndTxn", 4, transactional_id=ID, producer_id=who[0], producer_epoch=who[1], committed=True)
    assert answer.error_code == 0
    assert groups.offsets.of("g")[Partition("t", 0)] == CommittedOffset(3, -1, "", wire.cluster.now_ms)


def write_txn_markers(wire: Any, version: int) -> None:
    who = writing(wire)
    topics = [{"name": "t", "partition_indexes": [1, 9]}]
    marker = {
        "producer_id": who[0], "producer_epoch": who[1], "transaction_result": False, "topics": topics,
        "coordinator_epoch": 0, "transaction_version": 1,
    }  # fmt: skip
    answer = wire.ask("WriteTxnMarkers", version, markers=[marker])
    rows = only(only(answer.markers).topics).partitions
    assert [each.error_code for each in rows] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    log = wire.cluster.topics.log("t", 1)
    assert log.transactions.aborted_between(0, 2) == [(who[0], 0, 1)]


def list_transactions(wire: Any, version: int) -> None:
    writing(wire)

    def listed(**filters: Any) -> list[str]:
        fields = {"state_filters": [], "producer_id_filters": []} | filters
        answer = wire.ask("ListTransactions", version, **fields)
        return [each.transactional_id for each in answer.transaction_states]

    assert listed() == listed(state_filters=["Ongoing"]) == [ID]
    assert listed(state_filters=["Empty"]) == listed(producer_id_filters=[7]) == []
    if version >= 1:
        assert listed(duration_filter=10) == []
    if version >= 2:
        assert (listed(transactional_id_pattern="t."), listed(transactional_id_pattern="t")) == ([ID], [])


def describe_transactions(wire: Any, version: int) -> None:
    who = writing(wire)
    found, missing = wire.ask("DescribeTransactions", version, transactional_ids=[ID, "none"]).transaction_states
    assert (found.transaction_state, found.producer_id, found.transaction_timeout_ms) == ("Ongoing", who[0], 1000)
    assert (only(found.topics).topic, only(found.topics).partitions) == ("t", [1])
    assert missing.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def describe_producers(wire: Any, version: int) -> None:
    who = writing(wire)
    answer = wire.ask("DescribeProducers", version, topics=[{"name": "t", "partition_indexes": [1, 9]}])
    found, missing = only(answer.topics).partitions
    active = only(found.active_producers)
    assert (active.producer_id, active.last_sequence, active.current_txn_start_offset) == (who[0], 0, 0)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
