"""No API of its own: what a resource's configs are and where each comes from, for DescribeConfigs and CreateTopics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from loadwise.coordinator.cluster.brokers import Node
from loadwise.coordinator.configs.definitions import ConfigType, Definitions
from loadwise.coordinator.configs.resources import (
    BROKER_THROTTLES,
    DYNAMIC_BROKER_CONFIGS,
    OF_ALL_BROKERS,
    ResourceType,
)
from loadwise.coordinator.configs.topic_configs import TOPIC_CONFIGS
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.settings import SETTINGS, BrokerSettings, described


class Source(IntEnum):
    """Where a value comes from (``DescribeConfigsResponse.ConfigSource``)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    """One of the places where a value may come from; the first that there is counts."""

    name: str
    value: str
    source: Source


class Row(NamedTuple):
    """One config of a resource."""

    name: str
    value: str | None
    type: ConfigType
    source: Source
    synonyms: Sequence[Synonym]
    is_read_only: bool = False


_OWN_TYPES = {
    "advertised.listeners": ConfigType.LIST,
    "broker.rack": ConfigType.STRING,
    "default.replication.factor": ConfigType.INT,
    "node.id": ConfigType.INT,
}


def topic_rows(cluster: Cluster, configs: Mapping[str, str]) -> list[Row]:
    """The configs of a topic that was given these."""
    return _rows(cluster, TOPIC_CONFIGS, configs, Source.TOPIC)


def resource_rows(cluster: Cluster, kind: ResourceType, name: str, definitions: Definitions) -> list[Row]:
    """The configs of a group, or of a subscription to metrics."""
    source = Source.GROUP if kind is ResourceType.GROUP else Source.CLIENT_METRICS
    return _rows(cluster, definitions, cluster.resource_configs.of(kind, name), source)


def broker_rows(cluster: Cluster, node: Node | None) -> list[Row]:
    """What one broker runs with; None: what was set of all brokers."""
    if node is None:
        return [
            Row(name, value, DYNAMIC_BROKER_CONFIGS.by_name[name].type, Source.DYNAMIC_DEFAULT_BROKER, synonyms)
            for name, value in cluster.resource_configs.of(ResourceType.BROKER, OF_ALL_BROKERS).items()
            if (synonyms := [Synonym(name, value, Source.DYNAMIC_DEFAULT_BROKER)])
        ]
    its_own = {
        "node.id": str(node.id),
        "advertised.listeners": f"PLAINTEXT://{node.host}:{node.port}",
        "default.replication.factor": str(cluster.brokers.default_replication_factor),
    }
    if node.rack is not None:
        its_own["broker.rack"] = node.rack
    rows = [
        Row(name, value, _OWN_TYPES[name], Source.STATIC_BROKER, [Synonym(name, value, Source.STATIC_BROKER)], True)
        for name, value in its_own.items()
    ]
    for name in sorted({*SETTINGS, *DYNAMIC_BROKER_CONFIGS.by_name}):
        synonyms = _of_broker(cluster, name, str(node.id))
        if name in BROKER_THROTTLES:
            if len(synonyms) == 1:
                continue
            synonyms.pop()  # it has no default
        setting = SETTINGS.get(name)
        kind = DYNAMIC_BROKER_CONFIGS.by_name[name].type if setting is None else setting.type
        is_read_only = name not in DYNAMIC_BROKER_CONFIGS.by_name
        value, origin = (synonyms[0].value, synonyms[0].source) if synonyms else (None, Source.DEFAULT)
        rows.append(Row(name, value, kind, origin, synonyms, is_read_only))
    return rows


def _rows(cluster: Cluster, definitions: Definitions, configs: Mapping[str, str], source: Source) -> list[Row]:
    rows = []
    for name, definition in definitions.by_name.items():
        synonyms = [Synonym(name, configs[name], source)] if name in configs else []
        if definition.broker_config is not None:
            synonyms += _of_broker(cluster, definition.broker_config, OF_ALL_BROKERS, definition.default)
        value, origin = (synonyms[0].value, synonyms[0].source) if synonyms else (definition.default, Source.DEFAULT)
        rows.append(Row(name, value, definition.type, origin, synonyms))
    return rows


def _of_broker(cluster: Cluster, name: str, node_id: str, default: str = "") -> list[Synonym]:
    """Where a broker's config may come from, the first that counts first."""
    synonyms = []
    for where, source in ((node_id, Source.DYNAMIC_BROKER), (OF_ALL_BROKERS, Source.DYNAMIC_DEFAULT_BROKER)):
        value = cluster.resource_configs.of(ResourceType.BROKER, where).get(name)
        if value is not None and (where, source) != (OF_ALL_BROKERS, Source.DYNAMIC_BROKER):
            synonyms.append(Synonym(name, value, source))
    known = DYNAMIC_BROKER_CONFIGS.by_name.get(name)
    if known is not None:
        if known.fallback is not None:
            return [*synonyms, Synonym(*known.fallback, Source.DEFAULT)] if synonyms else []
        default = known.default
    if name in SETTINGS:
        default, now = described(BrokerSettings())[name], described(cluster.settings)[name]
        if now != default:
            synonyms.append(Synonym(name, now, Source.STATIC_BROKER))
    synonyms.append(Synonym(name, default, Source.DEFAULT))
    return synonyms
