"""Produce (0, v3 to v13): appends record batches to partitions.

v3 record batches v2; v5 log start offset; v7 zstd; v8 error messages; v9 flexible; v10 current leader (KIP-951); v11
and v12 transactions (KIP-890); v13 topics by id (KIP-516). acks=0 gets no response; on an error the connection is
closed, so that the producer refreshes its metadata, as in Kafka.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call, HangUp, NoAnswer, Outcome
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.cluster.log import NO_OFFSET, Appended
from loadwise.coordinator.cluster.replication import ReplicatedPartition
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.handling.access import Access, item_by_item, refused, topics
from loadwise.coordinator.handling.named_twice import EachOnce
from loadwise.coordinator.handling.new_leaders import current_leader, node_endpoints
from loadwise.coordinator.kafka_cluster import Cluster, Handler
from loadwise.coordinator.turns import Turns
from loadwise.protocol.batches import (
    MAGIC,
    MAGIC_OFFSET,
    BatchHeader,
    begins_transactional,
    begins_with_batch,
    read_header,
    size_of_first,
)
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.errors import MalformedBytesError
from loadwise.protocol.kafka_messages import ProduceRequest, ProduceResponse

_Topic = ProduceResponse.TopicProduceResponse
_Partition = _Topic.PartitionProduceResponse
_NEW_LEADERS = 10
_ADDS_PARTITIONS = 12
_BY_ID = 13
_ALL = -1
_ADMIN_CLIENT = "__admin_client"
"""The client id that Kafka lets write internal topics (``AdminUtils.ADMIN_CLIENT_ID``)."""
_ONCE = EachOnce(
    "index",
    "topic_data",
    "partition_data",
    name=lambda call, topic: topic.topic_id if call.version >= _BY_ID else topic.name,
)


@_ONCE.before
def handle(call: Call[ProduceRequest], cluster: Cluster) -> Turns[ProduceResponse | NoAnswer | HangUp]:
    """Append each batch separately; a batch with an error does not affect the others."""
    body = call.body
    failures = 0
    responses = []
    moved: set[int] = set()
    whole_error, _ = yield from _whole_error(body)
    for topic_data in body.topic_data:
        by_id = call.version >= _BY_ID
        found = cluster.topics.get_by_id(topic_data.topic_id) if by_id else cluster.topics.get(topic_data.name)
        missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        there = [] if found is None else found.partitions
        partitions = []
        for data in topic_data.partition_data:
            yield
            records = data.records or b""
            if whole_error is not ErrorCode.NONE:
                appended = Appended(whole_error)
            elif found is None:
                appended = Appended(missing)
            elif not 0 <= data.index < len(there):
                appended = Appended(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif (problem := _problem(records)) is not None:
                appended = Appended(ErrorCode.INVALID_RECORD, message=problem)
            elif body.acks not in (-1, 0, 1):
                appended = Appended(ErrorCode.INVALID_REQUIRED_ACKS)
            elif found.is_internal and call.request.client_id != _ADMIN_CLIENT:
                appended = Appended(ErrorCode.INVALID_TOPIC_EXCEPTION)
            elif there[data.index].leader != call.node_id:
                appended = Appended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                moved.add(there[data.index].leader)
            elif body.acks == _ALL and there[data.index].is_under_min_isr:
                appended = Appended(ErrorCode.NOT_ENOUGH_REPLICAS)
            else:
                place = Partition(found.name, data.index)
                appended = _append(call, cluster, there[data.index], place, records)
            start_offset = there[data.index].log.start_offset if appended.error is ErrorCode.NONE else NO_OFFSET
            row = _answer(data.index, appended, start_offset)
            if appended.error is ErrorCode.NOT_LEADER_OR_FOLLOWER and call.version >= _NEW_LEADERS:
                row.current_leader = current_leader(_Partition.LeaderIdAndEpoch, there[data.index])
            failures += appended.error is not ErrorCode.NONE
            partitions.append(row)
        yield
        responses.append(_Topic(name=topic_data.name, topic_id=topic_data.topic_id, partition_responses=partitions))
    if body.acks == 0:
        return HangUp(f"{failures} partitions of a Produce with acks=0 failed") if failures else NoAnswer()
    endpoints = node_endpoints(ProduceResponse.NodeEndpoint, cluster, moved) if call.version >= _NEW_LEADERS else []
    return ProduceResponse(responses=responses, node_endpoints=endpoints)


def _whole_error(body: ProduceRequest) -> Turns[tuple[ErrorCode, bool]]:
    """Return the error of the whole request, and whether it has transactional batches.

    An error are malformed batches, or a transaction without an id.
    """
    is_transactional = False
    for topic in body.topic_data:
        yield
        for data in topic.partition_data:
            yield
            try:
                is_transactional = is_transactional or (data.records is not None and begins_transactional(data.records))
            except MalformedBytesError:
                return ErrorCode.CORRUPT_MESSAGE, is_transactional
    if is_transactional and body.transactional_id is None:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, is_transactional
    return ErrorCode.NONE, is_transactional


def _problem(records: bytes) -> str | None:
    """Return why this is not one batch of the present version (``ProduceRequest.validateRecords``)."""
    if not begins_with_batch(records):
        return "there is no record batch"
    if records[MAGIC_OFFSET] != MAGIC:
        return "only record batches v2 are taken"
    if size_of_first(records) < len(records):
        return "a produce request takes one record batch a partition"
    return None


def _append(
    call: Call[ProduceRequest], cluster: Cluster, partition: ReplicatedPartition, place: Partition, records: bytes
) -> Appended:
    limit = cluster.settings.max_kept_bytes
    if cluster.topics.kept_bytes + len(records) > limit:
        message = f"the limit of {limit:,} bytes of records is reached: delete topics, or raise max_kept_bytes"
        return Appended(ErrorCode.POLICY_VIOLATION, message=message)
    header = read_header(records)
    in_transaction = False
    if header is not None and header.is_transactional and call.body.transactional_id is not None:
        error = _transaction_error(call, cluster, partition, place, header)
        if error is not ErrorCode.NONE:
            return Appended(error, message="the partition is not part of an open transaction of this producer")
        in_transaction = True
    begins_at_zero = in_transaction and call.version >= _ADDS_PARTITIONS
    appended = partition.log.append(
        records, now_ms=cluster.now_ms, in_transaction=in_transaction, begins_at_zero=begins_at_zero
    )
    if appended.size_bytes:
        cluster.grown(partition.log, appended)
    return appended


def _transaction_error(
    call: Call[ProduceRequest], cluster: Cluster, partition: ReplicatedPartition, place: Partition, header: BatchHeader
) -> ErrorCode:
    if partition.log.is_writing(header):
        return ErrorCode.NONE
    for feature in cluster.features:
        error = feature.produce_error(call, *place, header)
        if error is not None:
            return error
    return ErrorCode.INVALID_TXN_STATE


def _answer(index: int, appended: Appended, start_offset: int) -> _Partition:
    return _Partition(
        index=index,
        error_code=appended.error,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.timestamp_ms,
        log_start_offset=start_offset,
        record_errors=[
            _Partition.BatchIndexAndErrorMessage(batch_index=each, batch_index_error_message=appended.message)
            for each in appended.bad_records
        ],
        error_message=appended.message,
    )


@_ONCE.before
def guard(call: Call[ProduceRequest], cluster: Cluster, handle: Handler) -> Turns[Outcome]:
    error, is_transactional = yield from _whole_error(call.body)
    if error is not ErrorCode.NONE:
        return handle(call, cluster) if error is ErrorCode.CORRUPT_MESSAGE else refused(call, error)
    transactional_id = call.body.transactional_id
    if (
        transactional_id is not None
        and is_transactional
        and not Access(call, cluster).may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    ):
        return refused(call, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return item_by_item(topics(Operation.WRITE, by_id_from=_BY_ID), call, cluster, handle)
