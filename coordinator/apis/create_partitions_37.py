"""CreatePartitions (37, v0 to v3): adds partitions to topics.

v1 throttled after the response; v2 flexible; v3 throttling error.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.cluster.topics import MAX_NEW_PARTITIONS, NAMED_TWICE, TOO_MANY_AT_ONCE, TopicRefusal
from loadwise.coordinator.handling.access import per_item, topics
from loadwise.coordinator.handling.in_time import in_time
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns, counted
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import CreatePartitionsRequest, CreatePartitionsResponse


@in_time
def handle(call: Call[CreatePartitionsRequest], cluster: Cluster) -> Turns[CreatePartitionsResponse]:
    """Grow each topic separately; a topic that is named twice does not grow, as in Kafka.

    More than `MAX_NEW_PARTITIONS` fail as a whole, as in Kafka.
    """
    added = 0
    last = {}
    for wanted in call.body.topics:
        topic = cluster.topics.get(wanted.name)
        added += 0 if topic is None else max(wanted.count - len(topic.partitions), 0)
        last[wanted.name] = wanted
        yield
    is_too_many = added > MAX_NEW_PARTITIONS
    names = yield from counted(topic.name for topic in call.body.topics)
    results = []
    for wanted in last.values():
        if is_too_many:
            refusal: TopicRefusal | None = TOO_MANY_AT_ONCE
        else:
            refusal = NAMED_TWICE if names[wanted.name] > 1 else _grow(call, cluster, wanted)
        results.append(
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=wanted.name,
                error_code=ErrorCode.NONE if refusal is None else refusal.error,
                error_message=None if refusal is None else refusal.message,
            )
        )
        yield
    return CreatePartitionsResponse(results=results)


def _grow(
    call: Call[CreatePartitionsRequest], cluster: Cluster, wanted: CreatePartitionsRequest.CreatePartitionsTopic
) -> TopicRefusal | None:
    topic = cluster.topics.get(wanted.name)
    if topic is None:
        return TopicRefusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {wanted.name!r}")
    refusal = cluster.topics.growth_refusal(topic, wanted.count)
    replicas = None
    if refusal is None and wanted.assignments is not None:
        replicas = [each.broker_ids for each in wanted.assignments]
        added = wanted.count - len(topic.partitions)
        problem = cluster.brokers.misplaced(replicas, len(topic.partitions[0].replicas))
        if len(replicas) != added:
            problem = f"{added} new partitions, but assignments of {len(replicas)}"
        if problem is not None:
            refusal = TopicRefusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    if refusal is None and not call.body.validate_only:
        cluster.topics.grow(topic, wanted.count, replicas)
    return refusal


guard = per_item(topics(Operation.ALTER))
