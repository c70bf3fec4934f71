"""DescribeConfigs (32): the settings of topics and of brokers.

v1 synonyms and sources; v2 throttled after the response; v3 documentation and types; v4 flexible.

A topic has what its creator gave it and the few settings that are real here; a broker those that it runs with.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse

from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.cluster.brokers import Node
from loadwise.coordinator.cluster.topics import is_topic_name
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.settings import SETTINGS, ConfigType, described
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api

_TOPIC = 2
_BROKER = 4
_GROUP = 32
_Result = DescribeConfigsResponse.DescribeConfigsResult


_TYPES = {name: setting.type for name, setting in SETTINGS.items()} | {
    "advertised.listeners": ConfigType.LIST,
    "cleanup.policy": ConfigType.LIST,
    "default.replication.factor": ConfigType.INT,
    "max.message.bytes": ConfigType.INT,
    "node.id": ConfigType.INT,
    "retention.bytes": ConfigType.LONG,
    "retention.ms": ConfigType.LONG,
}
"""The settings that are no strings."""

_DYNAMIC_OF_BROKERS = {"message.max.bytes"}
"""Settings that Kafka's brokers can change while they run, which AlterConfigs would do if it were served."""


class _Source(IntEnum):
    """Where a value comes from (``DescribeConfigsResponse.ConfigSource``)."""

    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5


def handle(call: Call, cluster: Cluster) -> Message:
    """Describe each resource by itself."""
    return call.response(throttle_time_ms=0, results=[_describe(cluster, each) for each in call.body.resources])


def _describe(cluster: Cluster, resource: Message) -> Message:
    error, message = ErrorCode.NONE, None
    configs: dict[str, tuple[str, _Source]] = {}
    name = resource.resource_name
    if resource.resource_type == _TOPIC:
        topic = cluster.topics.get(name)
        if not is_topic_name(name):
            error, message = ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name!r} is no name for a topic"
        elif topic is None:
            error, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}"
        else:
            configs = _sourced(_topic_defaults(cluster), _Source.DEFAULT) | _sourced(topic.configs, _Source.TOPIC)
    elif resource.resource_type == _BROKER:
        nodes = {str(node.id): node for node in cluster.brokers.nodes}
        if not name or name in nodes:
            configs = _sourced(_broker_settings(cluster, nodes.get(name)), _Source.STATIC_BROKER)
        else:
            error, message = ErrorCode.INVALID_REQUEST, f"there is no broker {name!r}, only {', '.join(nodes)}"
    elif resource.resource_type != _GROUP:  # a group has none of its own
        error, message = ErrorCode.INVALID_REQUEST, f"resource type {resource.resource_type} has no settings here"
    wanted = resource.configuration_keys
    return _Result(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=name,
        configs=[
            _row(key, *config, read_only=resource.resource_type == _BROKER and key not in _DYNAMIC_OF_BROKERS)
            for key, config in configs.items()
            if wanted is None or key in wanted
        ],
    )


def _topic_defaults(cluster: Cluster) -> Mapping[str, str]:
    return {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "max.message.bytes": str(cluster.settings.max_batch_bytes),
        "message.timestamp.type": "CreateTime",
        "retention.bytes": "-1",
        "retention.ms": "-1",
    }


def _broker_settings(cluster: Cluster, node: Node | None) -> Mapping[str, str]:
    """What all brokers run with, and what one of them does; None stands for the defaults of all."""
    its_own = {}
    if node is not None:
        its_own = {"node.id": str(node.id), "advertised.listeners": f"PLAINTEXT://{node.host}:{node.port}"}
    if node is not None and node.rack is not None:
        its_own["broker.rack"] = node.rack
    return (
        its_own
        | {"default.replication.factor": str(cluster.brokers.default_replication_factor)}
        | described(cluster.settings)
    )


def _sourced(configs: Mapping[str, str], source: _Source) -> dict[str, tuple[str, _Source]]:
    return {key: (value, source) for key, value in configs.items()}


def _row(key: str, value: str, source: _Source, *, read_only: bool) -> Message:
    return _Result.DescribeConfigsResourceResult(
        name=key,
        value=value,
        read_only=read_only,
        config_source=source,
        is_sensitive=False,
        synonyms=[],
        config_type=_TYPES.get(key, ConfigType.STRING),
        documentation=None,
    )


SERVICE = Service(Api.of(DescribeConfigsRequest, DescribeConfigsResponse), handle)
