"""Fetch (1): record batches out of partitions, waiting for them if there are too few.

v4 record batches v2, isolation level; v5 log start offset; v7 sessions (KIP-227); v9 leader epoch; v11 rack (KIP-392);
v12 flexible, diverging epoch; v13 topics by id (KIP-516); v15 replica state; v16 node endpoints; v17, v18 for replicas.

There are no sessions: session id 0 in the answer tells the client to name all its partitions every time. There are no
transactions either, so read_committed and read_uncommitted see the same.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka.protocol.consumer import FetchRequest, FetchResponse

from loadwise.coordinator.broker import Broker
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.log import LEADER_EPOCH, PartitionLog
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api

_Topic = FetchResponse.FetchableTopicResponse
_Partition = _Topic.PartitionData
_BY_ID = 13


class _Wanted(NamedTuple):
    """One partition of a fetch: where to read, or why not."""

    partition: int
    offset: int
    max_bytes: int
    log: PartitionLog | None
    error: ErrorCode


def handle(call: Call, broker: Broker) -> Message | None:
    """Answer at once if there is enough, or an error to tell; park the fetch otherwise."""
    body = call.body
    if body.session_id:
        return call.response(
            throttle_time_ms=0,
            error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
            session_id=0,
            responses=[],
            node_endpoints=[],
        )
    wanted = [_resolve(call, broker, topic) for topic in body.topics]
    flat = [each for topic in wanted for each in topic]
    missing_bytes = body.min_bytes
    for each in flat:
        if each.log is None or missing_bytes <= 0:
            break
        missing_bytes -= each.log.available_bytes(each.offset, missing_bytes)
    has_errors = any(each.log is None for each in flat)
    if missing_bytes <= 0 or has_errors or body.max_wait_ms <= 0 or not flat:
        return _response(call, wanted)
    broker.fetches.park(
        call,
        # Looked up anew: a topic may be gone by then.
        lambda: _response(call, [_resolve(call, broker, topic) for topic in body.topics]),
        logs=[each.log for each in flat if each.log is not None],
        missing_bytes=missing_bytes,
        deadline_ms=broker.now_ms + body.max_wait_ms,
    )
    return None


def _resolve(call: Call, broker: Broker, topic: Message) -> list[_Wanted]:
    by_id = call.version >= _BY_ID
    found = broker.topics.get_by_id(topic.topic_id) if by_id else broker.topics.get(topic.topic)
    logs = [] if found is None else found.partitions
    wanted = []
    for each in topic.partitions:
        log = None
        if found is None and by_id:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif not 0 <= each.partition < len(logs):
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif each.current_leader_epoch > LEADER_EPOCH:
            error = ErrorCode.UNKNOWN_LEADER_EPOCH
        elif not logs[each.partition].start_offset <= each.fetch_offset <= logs[each.partition].end_offset:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            error = ErrorCode.NONE
            log = logs[each.partition]
        wanted.append(_Wanted(each.partition, each.fetch_offset, each.partition_max_bytes, log, error))
    return wanted


def _response(call: Call, wanted: list[list[_Wanted]]) -> Message:
    budget = call.body.max_bytes
    is_empty = True
    responses = []
    for topic, partitions in zip(call.body.topics, wanted, strict=True):
        rows = []
        for each in partitions:
            records = b""
            end_offset = -1
            if each.log is not None:
                end_offset = each.log.end_offset
                if each.offset < end_offset and (budget > 0 or is_empty):
                    limit = min(each.max_bytes, budget)
                    records = each.log.read(each.offset, limit, at_least_one=is_empty)
                    budget -= len(records)
                    is_empty = is_empty and not records
            rows.append(
                _Partition(
                    partition_index=each.partition,
                    error_code=each.error,
                    high_watermark=end_offset,
                    last_stable_offset=end_offset,
                    log_start_offset=-1 if each.log is None else each.log.start_offset,
                    aborted_transactions=[] if each.log is None else None,
                    preferred_read_replica=-1,
                    records=records,
                )
            )
        responses.append(_Topic(topic=topic.topic, topic_id=topic.topic_id, partitions=rows))
    return call.response(
        throttle_time_ms=0, error_code=ErrorCode.NONE, session_id=0, responses=responses, node_endpoints=[]
    )


SERVICE = Service(Api.of(FetchRequest, FetchResponse), handle)
