"""ListOffsets (2, v1 to v11): returns the first or last offset, or the offset of a timestamp.

v1 one offset per partition; v2 isolation level; v4 leader epoch; v6 flexible; v7 largest timestamp (KIP-734); v8
earliest local offset (the earliest of all, here); v9 and v11 offsets of tiered storage, which does not exist here.

Records are decompressed to find a timestamp; a batch whose codec is not installed gets UNSUPPORTED_COMPRESSION_TYPE.
Decompression is limited per request: partitions beyond the limit get OFFSET_NOT_AVAILABLE, and clients retry. A
partition that exceeds it alone gets CORRUPT_MESSAGE.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.cluster.brokers import CONSUMER_OFFSETS
from loadwise.coordinator.cluster.log import NO_OFFSET, NO_TIMESTAMP, PartitionLog, TimestampedOffset
from loadwise.coordinator.cluster.replication import NO_EPOCH
from loadwise.coordinator.handling.access import per_item, topics
from loadwise.coordinator.handling.named_twice import EachOnce
from loadwise.coordinator.handling.refusals import refusal_in_turns
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.errors import MalformedBytesError, MissingCodecError
from loadwise.protocol.kafka_messages import ListOffsetsRequest, ListOffsetsResponse
from loadwise.protocol.record_times import ReadingBudget, record_times

_log = logging.getLogger("loadwise.coordinator")
_LEADER_EPOCH = 4
_ISOLATION_LEVEL = 2
_ISOLATION_LEVELS = (0, _READ_COMMITTED := 1)
_NEVER = 99
_SINCE = {-1: 0, -2: 0, -3: 7, -4: 8, -5: 9, -6: 11}
"""Special timestamps, and the versions that introduced them."""
_ONCE = EachOnce("partition_index")
_Topic = ListOffsetsResponse.ListOffsetsTopicResponse


def handle(call: Call[ListOffsetsRequest], cluster: Cluster) -> Turns[ListOffsetsResponse]:
    """Look up each partition; repeated ones are answered once, with INVALID_REQUEST, as in Kafka."""
    if call.version >= _ISOLATION_LEVEL and call.body.isolation_level not in _ISOLATION_LEVELS:
        refusal = yield from refusal_in_turns(call, ErrorCode.UNKNOWN_SERVER_ERROR)
        assert isinstance(refusal, ListOffsetsResponse)
        return refusal
    named: Counter[tuple[str, int]] = Counter()
    for topic in call.body.topics:
        for each in topic.partitions:
            named[topic.name, each.partition_index] += 1
            yield
        yield
    budget = ReadingBudget()
    topics = []
    once = yield from _ONCE.of(call)
    for topic in once.body.topics:
        if topic.name == CONSUMER_OFFSETS:
            cluster.offsets_topic.begin()
        partitions = []
        yield
        for each in topic.partitions:
            yield
            partition = cluster.topics.partition(topic.name, each.partition_index)
            found = TimestampedOffset()
            epoch = NO_EPOCH
            if named[topic.name, each.partition_index] > 1:
                error = ErrorCode.INVALID_REQUEST
            elif each.timestamp < 0 and call.version < _SINCE.get(each.timestamp, _NEVER):
                error = ErrorCode.UNSUPPORTED_VERSION
            elif partition is None:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                known_epoch = each.current_leader_epoch if call.version >= _LEADER_EPOCH else NO_EPOCH
                error = partition.refusal(call.node_id, known_epoch)
                if error is ErrorCode.NONE:
                    committed_only = call.version >= _ISOLATION_LEVEL and call.body.isolation_level == _READ_COMMITTED
                    log = partition.log
                    end_offset = log.stable_offset if committed_only else log.high_watermark
                    found, error = _looked_up(log, each.timestamp, end_offset, budget)
                    epoch = NO_EPOCH if found.offset == NO_OFFSET else partition.log.epochs.of(found.offset)
            partitions.append(
                _Topic.ListOffsetsPartitionResponse(
                    partition_index=each.partition_index,
                    error_code=error,
                    timestamp=found.timestamp,
                    offset=found.offset,
                    leader_epoch=epoch,
                )
            )
        if partitions:
            topics.append(_Topic(name=topic.name, partitions=partitions))
    return ListOffsetsResponse(topics=topics)


def _looked_up(
    log: PartitionLog, timestamp: int, end_offset: int, budget: ReadingBudget
) -> tuple[TimestampedOffset, ErrorCode]:
    is_first = budget == ReadingBudget()
    try:
        return _find(log, timestamp, end_offset, budget), ErrorCode.NONE
    except MissingCodecError as problem:
        _log.warning("ListOffsets returns UNSUPPORTED_COMPRESSION_TYPE: %s", problem)
        return TimestampedOffset(), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    except MalformedBytesError:
        # The batch may be valid and earlier partitions have used up the budget, so the client retries.
        return TimestampedOffset(), ErrorCode.CORRUPT_MESSAGE if is_first else ErrorCode.OFFSET_NOT_AVAILABLE


def _find(log: PartitionLog, timestamp: int, end_offset: int, budget: ReadingBudget) -> TimestampedOffset:
    def records(batch: bytes) -> Iterator[TimestampedOffset]:
        return (TimestampedOffset(each.offset, each.timestamp_ms) for each in record_times(batch, budget))

    match timestamp:
        case -1:  # latest
            return TimestampedOffset(end_offset, NO_TIMESTAMP)
        case -2 | -4:  # earliest, earliest local
            return TimestampedOffset(log.start_offset, NO_TIMESTAMP)
        case -5 | -6:  # the last in tiered storage, the first to upload
            return TimestampedOffset()
        case -3:  # largest timestamp
            found = log.latest_timestamp(records)
        case _:
            found = log.first_at_or_after(timestamp, records)
    return found if found.offset < end_offset else TimestampedOffset()


guard = per_item(topics(Operation.DESCRIBE))
