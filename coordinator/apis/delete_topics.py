"""DeleteTopics (20): topics go, with their records and what groups committed for them.

v1 throttle time; v4 flexible; v5 error messages; v6 topics by id (KIP-516).
"""

from __future__ import annotations

from kafka.protocol.admin import DeleteTopicsRequest, DeleteTopicsResponse

from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.cluster.topics import Topic
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api

_BY_ID = 6


def handle(call: Call, cluster: Cluster) -> Message:
    """Delete each topic by itself; fetches that wait for it are answered."""
    if call.version < _BY_ID:
        wanted = [(name, None) for name in call.body.topic_names]
    else:
        wanted = [(topic.name, topic.topic_id) for topic in call.body.topics]
    responses = []
    deleted = set()
    for name, topic_id in wanted:
        topic = cluster.topics.get_by_id(topic_id) if name is None else cluster.topics.get(name)
        if topic is not None:
            error = ErrorCode.NONE
            _delete(cluster, topic)
            deleted.add(topic.name)
        else:
            error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        responses.append(
            DeleteTopicsResponse.DeletableTopicResult(
                name=name if topic is None else topic.name,
                topic_id=topic_id if topic is None else topic.id,
                error_code=error,
                error_message=None,
            )
        )
    if deleted:
        cluster.groups.forget_topics(deleted)
    return call.response(throttle_time_ms=0, responses=responses)


def _delete(cluster: Cluster, topic: Topic) -> None:
    cluster.topics.delete(topic)
    for partition in topic.partitions:
        cluster.fetches.gone(partition.log)


SERVICE = Service(Api.of(DeleteTopicsRequest, DeleteTopicsResponse), handle)
