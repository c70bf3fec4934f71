"""Produce (0): record batches into partitions.

v3 record batches v2; v5 log start offset; v7 zstd; v8 error messages; v9 flexible; v10 new leader in the answer; v11
and v12 transactions (KIP-890); v13 topics by id (KIP-516). acks=0 gets no answer at all, as in Kafka.
"""

from __future__ import annotations

from kafka.protocol.producer import ProduceRequest, ProduceResponse

from loadwise.coordinator.broker import Broker
from loadwise.coordinator.calls import Call, Message, NoAnswer, Service
from loadwise.coordinator.log import NO_OFFSET, Appended, PartitionLog
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api

_Topic = ProduceResponse.TopicProduceResponse
_BY_ID = 13


def handle(call: Call, broker: Broker) -> Message | NoAnswer:
    """Append every batch by itself; one that is refused does not touch the others."""
    body = call.body
    responses = []
    for topic_data in body.topic_data:
        by_id = call.version >= _BY_ID
        found = broker.topics.get_by_id(topic_data.topic_id) if by_id else broker.topics.get(topic_data.name)
        missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        logs = [] if found is None else found.partitions
        partitions = []
        for data in topic_data.partition_data:
            if body.acks not in (-1, 0, 1):
                appended = Appended(ErrorCode.INVALID_REQUIRED_ACKS)
            elif found is None:
                appended = Appended(missing)
            elif not 0 <= data.index < len(logs):
                appended = Appended(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif data.records is None:
                appended = Appended(ErrorCode.INVALID_RECORD, message="there is no record batch")
            else:
                appended = _append(broker, logs[data.index], data.records)
            partitions.append(_answer(data.index, appended))
        responses.append(_Topic(name=topic_data.name, topic_id=topic_data.topic_id, partition_responses=partitions))
    if body.acks == 0:
        return NoAnswer()
    return call.response(responses=responses, throttle_time_ms=0, node_endpoints=[])


def _append(broker: Broker, log: PartitionLog, records: bytes) -> Appended:
    appended = log.append(records)
    if appended.size_bytes:
        broker.fetches.grown(log, appended.size_bytes)
    return appended


def _answer(index: int, appended: Appended) -> Message:
    failed = appended.error is not ErrorCode.NONE
    return _Topic.PartitionProduceResponse(
        index=index,
        error_code=appended.error,
        base_offset=appended.base_offset,
        log_append_time_ms=-1,  # timestamps are the producer's (message.timestamp.type=CreateTime)
        log_start_offset=NO_OFFSET if failed else 0,
        record_errors=[],
        error_message=appended.message,
    )


SERVICE = Service(Api.of(ProduceRequest, ProduceResponse), handle)
