"""OffsetForLeaderEpoch (23): where the log of a leader epoch ends, for a consumer that checks its position (KIP-320).

v2 leader epoch in request and answer; v3 replica id; v4 flexible. There is one epoch, which ends where the log does.
"""

from __future__ import annotations

from kafka.protocol.consumer import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

from loadwise.coordinator.broker import Broker
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.log import LEADER_EPOCH, NO_OFFSET
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api

_Topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult


def handle(call: Call, broker: Broker) -> Message:
    """Look every partition up."""
    topics = []
    for topic in call.body.topics:
        partitions = []
        for each in topic.partitions:
            log = broker.topics.log(topic.topic, each.partition)
            epoch, end_offset = -1, NO_OFFSET
            if log is None:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif each.current_leader_epoch > LEADER_EPOCH:
                error = ErrorCode.UNKNOWN_LEADER_EPOCH
            else:
                error = ErrorCode.NONE
                if each.leader_epoch == LEADER_EPOCH:
                    epoch, end_offset = LEADER_EPOCH, log.end_offset
            partitions.append(
                _Topic.EpochEndOffset(
                    error_code=error, partition=each.partition, leader_epoch=epoch, end_offset=end_offset
                )
            )
        topics.append(_Topic(topic=topic.topic, partitions=partitions))
    return call.response(throttle_time_ms=0, topics=topics)


SERVICE = Service(Api.of(OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse), handle)
