"""CreateTopics (19, v2 to v7): creates topics.

v2 throttled after the response; v4 the broker's defaults for partitions and replicas (KIP-464); v5 flexible, configs in
the response (KIP-525); v7 topic id (KIP-516).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.cluster.brokers import CLUSTER_METADATA
from loadwise.coordinator.cluster.topics import MAX_NEW_PARTITIONS, NAMED_TWICE, TOO_MANY_AT_ONCE, TopicRefusal
from loadwise.coordinator.configs.definitions import BadConfigError
from loadwise.coordinator.configs.topic_configs import check_topic_configs
from loadwise.coordinator.handling.access import Access, open_to_all
from loadwise.coordinator.handling.config_rows import new_topic_rows
from loadwise.coordinator.handling.in_time import in_time
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns, counted, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import CreateTopicsRequest, CreateTopicsResponse

_Asked = CreateTopicsRequest.CreatableTopic
_Result = CreateTopicsResponse.CreatableTopicResult
_Config = _Result.CreatableTopicConfigs
_BROKERS_DEFAULT = -1
_TELLS_CONFIGS = 5
_FORBIDDEN = TopicRefusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
_PROHIBITED = TopicRefusal(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {CLUSTER_METADATA} is prohibited.")


@in_time
def handle(call: Call[CreateTopicsRequest], cluster: Cluster) -> Turns[CreateTopicsResponse]:
    """Create each topic separately; a topic that is named twice is not created, as in Kafka.

    Topics that the client may not create get an error. The response has the configs of those that it may describe.
    A request for more than `MAX_NEW_PARTITIONS` fails as a whole, as in Kafka, because other clients have to wait.
    """
    names = yield from counted(topic.name for topic in call.body.topics)
    access = Access(call, cluster)
    may_all = access.may(Operation.CREATE, ResourceType.CLUSTER)
    wanted: list[_Asked] = []
    refused: dict[str, TopicRefusal] = {}
    made = 0
    for topic in call.body.topics:
        yield
        if names[topic.name] > 1:
            refused[topic.name] = NAMED_TWICE
        elif topic.name == CLUSTER_METADATA:
            refused[topic.name] = _PROHIBITED
        elif not may_all and not access.may(Operation.CREATE, ResourceType.TOPIC, topic.name):
            refused[topic.name] = _FORBIDDEN
        else:
            made += _partition_count(cluster, topic)
            wanted.append(topic)
    if made > MAX_NEW_PARTITIONS:
        refused |= dict.fromkeys((topic.name for topic in wanted), TOO_MANY_AT_ONCE)
        wanted = []
    tell_configs = _ConfigsToTell(cluster) if call.version >= _TELLS_CONFIGS else None
    topics = []
    for topic in wanted:
        row = _create(call, cluster, topic, tell_configs)
        topics.append(row)
        if row.error_code is ErrorCode.NONE and not access.may(
            Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, row.name
        ):
            row.num_partitions = row.replication_factor = _BROKERS_DEFAULT
            row.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            row.configs = []
        yield max(_partition_count(cluster, topic), 1)
    topics += yield from listed(_result(name, None, refusal) for name, refusal in refused.items())
    return CreateTopicsResponse(topics=topics)


def _create(
    call: Call[CreateTopicsRequest], cluster: Cluster, topic: _Asked, tell_configs: _ConfigsToTell | None
) -> _Result:
    count = _partition_count(cluster, topic)
    factor = topic.replication_factor
    factor = cluster.brokers.default_replication_factor if factor == _BROKERS_DEFAULT else factor
    replicas = None
    if topic.assignments:
        by_number = {each.partition_index: each.broker_ids for each in topic.assignments}
        replicas = [by_number[number] for number in sorted(by_number)]
    configs = {config.name: config.value for config in topic.configs if config.value is not None}
    refusal = (
        cluster.topics.name_refusal(topic.name)
        or _config_refusal(topic)
        or _layout_refusal(cluster, topic, replicas)
        or cluster.topics.size_refusal(count, len(replicas[0]) if replicas else factor)
    )
    if refusal is not None:
        return _result(topic.name, None, refusal)
    if call.body.validate_only:
        topic_id = cluster.new_uuid()  # an unused id, as in Kafka
    else:
        topic_id = cluster.topics.create(topic.name, count, configs, replication_factor=factor, replicas=replicas).id
    rows = [] if tell_configs is None else tell_configs(configs)
    copies = len(replicas[0]) if replicas else factor
    return _result(topic.name, topic_id, None, partitions=count, replicas=copies, rows=rows)


class _ConfigsToTell:
    """A topic's configs in the response; topics with the same ones share them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[tuple[tuple[str, str], ...], list[_Config]] = {}

    def __call__(self, configs: Mapping[str, str]) -> list[_Config]:
        key = tuple(sorted(configs.items()))
        if key not in self._known:
            self._known[key] = [
                _Config(name=row.name, value=row.value, read_only=False, config_source=row.source, is_sensitive=False)
                for row in new_topic_rows(self._cluster, configs)
            ]
        return self._known[key]


def _partition_count(cluster: Cluster, topic: _Asked) -> int:
    if topic.assignments:
        return len(topic.assignments)
    count = topic.num_partitions
    return cluster.settings.default_partitions if count == _BROKERS_DEFAULT else count


def _config_refusal(topic: _Asked) -> TopicRefusal | None:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        message = f"Null value not supported for topic configs: {','.join(nulls)}"
        return TopicRefusal(ErrorCode.INVALID_CONFIG, message)
    try:
        check_topic_configs({config.name: config.value for config in topic.configs if config.value is not None})
    except BadConfigError as problem:
        return TopicRefusal(ErrorCode.INVALID_CONFIG, str(problem))
    return None


def _layout_refusal(cluster: Cluster, topic: _Asked, replicas: Sequence[Sequence[int]] | None) -> TopicRefusal | None:
    if replicas is not None:
        if topic.num_partitions != -1 or topic.replication_factor != -1:
            both = "set either the assignments or the numbers of partitions and replicas"
            return TopicRefusal(ErrorCode.INVALID_REQUEST, both)
        if sorted(each.partition_index for each in topic.assignments) != list(range(len(topic.assignments))):
            gaps = "the assignments must name the partitions from 0 on, each once"
            return TopicRefusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, gaps)
        problem = cluster.brokers.misplaced(replicas)
        if problem is not None:
            return TopicRefusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    elif topic.replication_factor != _BROKERS_DEFAULT and topic.replication_factor < 1:
        wrong = "Replication factor must be larger than 0, or -1 to use the default value."
        return TopicRefusal(ErrorCode.INVALID_REPLICATION_FACTOR, wrong)
    return None


def _result(
    name: str,
    topic_id: UUID | None,
    refusal: TopicRefusal | None,
    *,
    partitions: int = -1,
    replicas: int = -1,
    rows: Sequence[_Config] = (),
) -> _Result:
    return _Result(
        name=name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE if refusal is None else refusal.error,
        error_message=None if refusal is None else refusal.message,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=rows,
    )


guard = open_to_all
