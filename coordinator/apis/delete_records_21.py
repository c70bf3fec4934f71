"""DeleteRecords (21, v0 to v2): moves the start of partitions to another offset.

v1 throttled after the response; v2 flexible.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.cluster.brokers import INTERNAL_TOPICS
from loadwise.coordinator.handling.access import per_item, topics
from loadwise.coordinator.handling.named_twice import EachOnce
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DeleteRecordsRequest, DeleteRecordsResponse

_UP_TO_THE_END = -1
_NONE = -1
_ONCE = EachOnce("partition_index")
_Asked = DeleteRecordsRequest.DeleteRecordsTopic.DeleteRecordsPartition
_Topic = DeleteRecordsResponse.DeleteRecordsTopicResult


@_ONCE.before
def handle(call: Call[DeleteRecordsRequest], cluster: Cluster) -> Turns[DeleteRecordsResponse]:
    """Delete in each partition that this broker leads; a later start does not change."""
    topics = []
    for topic in call.body.topics:
        rows = yield from listed(_deleted(call, cluster, topic.name, each) for each in topic.partitions)
        topics.append(_Topic(name=topic.name, partitions=rows))
        yield
    return DeleteRecordsResponse(topics=topics)


def _deleted(
    call: Call[DeleteRecordsRequest], cluster: Cluster, topic: str, asked: _Asked
) -> _Topic.DeleteRecordsPartitionResult:
    partition = cluster.topics.partition(topic, asked.partition_index)
    error, low_watermark = ErrorCode.NONE, _NONE
    if partition is None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif topic in INTERNAL_TOPICS:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    elif partition.leader != call.node_id:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    elif not partition.log.config.is_deleted:
        error = ErrorCode.POLICY_VIOLATION  # cleanup.policy is only compact
    else:
        log = partition.log
        offset = log.high_watermark if asked.offset == _UP_TO_THE_END else asked.offset
        if 0 <= offset <= log.high_watermark:
            cluster.delete_records(log, offset)
            low_watermark = log.start_offset
        else:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
    return _Topic.DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=low_watermark, error_code=error
    )


guard = _ONCE.before(per_item(topics(Operation.DELETE)))
