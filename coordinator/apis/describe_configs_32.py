"""DescribeConfigs (32, v1 to v4): the configs of topics, brokers and their loggers, groups and client metrics.

v1 synonyms and sources; v2 throttled after the response; v3 documentation and types; v4 flexible.

Only those broker configs are listed that have a meaning here.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.cluster.topics import is_topic_name, name_problem
from loadwise.coordinator.configs.resources import CLIENT_METRICS_CONFIGS, ConfigResourceType
from loadwise.coordinator.group_configs import group_configs
from loadwise.coordinator.handling.access import configs as of_configs
from loadwise.coordinator.handling.access import per_item
from loadwise.coordinator.handling.config_rows import (
    Row,
    broker_rows,
    logger_rows,
    other_broker,
    resource_rows,
    topic_rows,
)
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DescribeConfigsRequest, DescribeConfigsResponse

_MOST_ROWS = 100_000
"""Maximum configs in a response, because a small request could ask for millions."""
_Resource = DescribeConfigsRequest.DescribeConfigsResource
_Result = DescribeConfigsResponse.DescribeConfigsResult
_Config = _Result.DescribeConfigsResourceResult


def handle(call: Call[DescribeConfigsRequest], cluster: Cluster) -> Turns[DescribeConfigsResponse]:
    """Describe each resource separately."""
    rows = 0
    results = []
    for resource in call.body.resources:
        result = _too_many(resource)
        if rows < _MOST_ROWS:
            result = yield from _describe(call, cluster, resource)
        rows += len(result.configs)
        results.append(result)
        yield
    return DescribeConfigsResponse(results=results)


def _too_many(resource: _Resource) -> _Result:
    return _Result(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=f"a response can contain {_MOST_ROWS:,} configs: ask for fewer resources at once",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


def _describe(call: Call[DescribeConfigsRequest], cluster: Cluster, resource: _Resource) -> Turns[_Result]:
    error, message = ErrorCode.NONE, None
    rows: list[Row] = []
    name = resource.resource_name
    match resource.resource_type:
        case ConfigResourceType.TOPIC:
            topic = cluster.topics.get(name)
            if not is_topic_name(name):
                error, message = ErrorCode.INVALID_TOPIC_EXCEPTION, name_problem(name)
            elif topic is None:
                error, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}"
            else:
                rows = topic_rows(cluster, topic.configs)
        case ConfigResourceType.BROKER:
            nodes = {str(node.id): node for node in cluster.brokers.nodes}
            if not name or name in nodes:
                rows = broker_rows(cluster, nodes.get(name))
            else:
                error, message = ErrorCode.INVALID_REQUEST, f"there is no broker {name!r}, only {', '.join(nodes)}"
        case ConfigResourceType.BROKER_LOGGER:
            message = other_broker(call, name)
            if message is None:
                rows = logger_rows()
            else:
                error = ErrorCode.INVALID_REQUEST
        case ConfigResourceType.GROUP if not name:
            error, message = ErrorCode.INVALID_REQUEST, "Group name must not be empty"
        case ConfigResourceType.GROUP:
            rows = resource_rows(cluster, ConfigResourceType.GROUP, name, group_configs())
        case ConfigResourceType.CLIENT_METRICS if not name:
            error, message = ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"
        case ConfigResourceType.CLIENT_METRICS:
            rows = resource_rows(cluster, ConfigResourceType.CLIENT_METRICS, name, CLIENT_METRICS_CONFIGS)
        case _:
            error, message = ErrorCode.INVALID_REQUEST, f"resource type {resource.resource_type} has no configs here"
    wanted = set(resource.configuration_keys or ())
    configs = yield from listed(_row(call, row) for row in rows if not wanted or row.name in wanted)
    return _Result(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=name,
        configs=configs,
    )


def _row(call: Call[DescribeConfigsRequest], row: Row) -> _Config:
    synonym = _Config.DescribeConfigsSynonym
    return _Config(
        name=row.name,
        value=None if row.is_sensitive else row.value,
        read_only=row.is_read_only,
        config_source=row.source,
        is_sensitive=row.is_sensitive,
        synonyms=[
            synonym(name=each.name, value=None if row.is_sensitive else each.value, source=each.source)
            for each in row.synonyms
        ]
        if call.body.include_synonyms
        else [],
        config_type=row.type,
        documentation=None,
    )


guard = per_item(of_configs(Operation.DESCRIBE_CONFIGS), message=True)
