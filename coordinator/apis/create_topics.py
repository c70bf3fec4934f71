"""CreateTopics (19): new topics.

v2 throttled after the response; v4 the broker's default for partitions and replicas (KIP-464); v5 flexible, configs in
the answer (KIP-525); v7 topic id (KIP-516).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kafka.protocol.admin import CreateTopicsRequest, CreateTopicsResponse

from loadwise.coordinator.apis.config_rows import Row, topic_rows
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.cluster.topics import Refusal
from loadwise.coordinator.configs.definitions import BadConfigError
from loadwise.coordinator.configs.topic_configs import check_topic_configs
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api

_BROKERS_DEFAULT = -1
_TELLS_CONFIGS = 5


def handle(call: Call, cluster: Cluster) -> Message:
    """Make each topic by itself; a topic named twice is made not at all, as in Kafka."""
    names = Counter(topic.name for topic in call.body.topics)
    topics: list[Message] = []
    for topic in call.body.topics:
        if names.pop(topic.name, 0) != 1:
            if topic.name not in {row.name for row in topics}:
                twice = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                topics.append(_result(topic.name, None, twice))
            continue
        topics.append(_create(call, cluster, topic))
    return call.response(throttle_time_ms=0, topics=topics)


def _create(call: Call, cluster: Cluster, topic: Message) -> Message:
    count = topic.num_partitions
    if topic.assignments:
        count = len(topic.assignments)
    elif count == _BROKERS_DEFAULT:
        count = cluster.settings.default_partitions
    factor = topic.replication_factor
    factor = cluster.brokers.default_replication_factor if factor == _BROKERS_DEFAULT else factor
    replicas = None
    if topic.assignments:
        by_number = {each.partition_index: each.broker_ids for each in topic.assignments}
        replicas = [by_number[number] for number in sorted(by_number)]
    configs = {config.name: config.value for config in topic.configs if config.value is not None}
    refusal = (
        _layout_refusal(cluster, topic, replicas) or _config_refusal(topic) or cluster.topics.refusal(topic.name, count)
    )
    if refusal is not None:
        return _result(topic.name, None, refusal)
    topic_id = None
    if not call.body.validate_only:
        made = cluster.topics.create(topic.name, count, configs, replication_factor=factor, replicas=replicas)
        topic_id = made.id
    rows = topic_rows(cluster, configs) if call.version >= _TELLS_CONFIGS else []
    copies = len(replicas[0]) if replicas else factor
    return _result(topic.name, topic_id, None, partitions=count, replicas=copies, rows=rows)


def _config_refusal(topic: Message) -> Refusal | None:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        message = f"Null value not supported for topic configs: {','.join(nulls)}"
        return Refusal(ErrorCode.INVALID_CONFIG, message)
    try:
        check_topic_configs({config.name: config.value for config in topic.configs})
    except BadConfigError as problem:
        return Refusal(ErrorCode.INVALID_CONFIG, str(problem))
    return None


def _layout_refusal(cluster: Cluster, topic: Message, replicas: Sequence[Sequence[int]] | None) -> Refusal | None:
    if replicas is not None:
        if topic.num_partitions != -1 or topic.replication_factor != -1:
            both = "give the assignments, or the numbers of partitions and replicas, not both"
            return Refusal(ErrorCode.INVALID_REQUEST, both)
        if sorted(each.partition_index for each in topic.assignments) != list(range(len(topic.assignments))):
            gaps = "the assignments have to name the partitions from 0 on, each once"
            return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, gaps)
        problem = cluster.brokers.misplaced(replicas)
        if problem is not None:
            return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    elif topic.replication_factor != _BROKERS_DEFAULT:
        brokers = len(cluster.brokers.nodes)
        if not 1 <= topic.replication_factor <= brokers:
            wrong = f"{topic.replication_factor} replicas; a partition can have 1 to {brokers}, the number of brokers"
            return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, wrong)
    return None


def _result(
    name: str,
    topic_id: object,
    refusal: Refusal | None,
    *,
    partitions: int = -1,
    replicas: int = -1,
    rows: Sequence[Row] = (),
) -> Message:
    return CreateTopicsResponse.CreatableTopicResult(
        name=name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE if refusal is None else refusal.error,
        error_message=None if refusal is None else refusal.message,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            CreateTopicsResponse.CreatableTopicResult.CreatableTopicConfigs(
                name=row.name, value=row.value, read_only=False, config_source=row.source, is_sensitive=False
            )
            for row in rows
        ],
    )


SERVICE = Service(Api.of(CreateTopicsRequest, CreateTopicsResponse), handle)
