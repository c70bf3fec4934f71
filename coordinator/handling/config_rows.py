"""A resource's configs and their sources, for DescribeConfigs and CreateTopics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from itertools import dropwhile
from typing import NamedTuple

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.cluster.brokers import Node
from loadwise.coordinator.configs.broker_configs import LISTENER, broker_configs
from loadwise.coordinator.configs.definitions import ConfigType, Definitions
from loadwise.coordinator.configs.loggers import levels
from loadwise.coordinator.configs.resources import (
    BROKER_THROTTLES,
    DYNAMIC_BROKER_CONFIGS,
    OF_ALL_BROKERS,
    ConfigResourceType,
)
from loadwise.coordinator.configs.topic_configs import TOPIC_CONFIGS, broker_configs_of_topics
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.settings import BrokerSettings, described, effective_settings


class ConfigSource(IntEnum):
    """The source of a value (``DescribeConfigsResponse.ConfigSource``)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    """A possible source of a value; the first existing one counts."""

    name: str
    value: str
    source: ConfigSource


class Row(NamedTuple):
    """One config of a resource."""

    name: str
    value: str | None
    type: ConfigType
    source: ConfigSource
    synonyms: Sequence[Synonym]
    is_read_only: bool = False

    @property
    def is_sensitive(self) -> bool:
        """Return whether its value is hidden from clients."""
        return self.type is ConfigType.PASSWORD


_OWN_TYPES = {
    "advertised.listeners": ConfigType.LIST,
    "broker.rack": ConfigType.STRING,
    "default.replication.factor": ConfigType.INT,
    "node.id": ConfigType.INT,
}


_FAMILIES: Mapping[str, Sequence[str]] = {
    each: names
    for definition in DYNAMIC_BROKER_CONFIGS.by_name.values()
    if definition.others
    for names in ((definition.name, *(other.name for other in definition.others)),)
    for each in names
}
"""Broker configs for the same time in different units; the first one set counts."""


_RETENTION_MS, _NO_END_MS = "retention.ms", -1


def other_broker(call: Call, name: str) -> str | None:
    """Return the error if this broker is not the one whose loggers are described; None if it is."""
    if not name:
        return "Broker id must not be empty"
    if not name.lstrip("-").isdecimal():
        return f"Node id must be an integer, but it is: {name}"
    return None if int(name) == call.node_id else f"Unexpected broker id, expected {call.node_id}, but received {name}"


def logger_rows() -> list[Row]:
    """Return the level of each logger."""
    source = ConfigSource.DYNAMIC_BROKER_LOGGER
    return [Row(name, word, ConfigType.UNKNOWN, source, ()) for name, word in levels().items()]


def topic_rows(cluster: Cluster, configs: Mapping[str, str]) -> list[Row]:
    """Return the configs of a topic with these configs of its own."""
    return _rows(cluster, TOPIC_CONFIGS, configs, ConfigSource.TOPIC)


def new_topic_rows(cluster: Cluster, configs: Mapping[str, str]) -> list[Row]:
    """Return the same rows as in CreateTopics.

    Their source is then a broker's time in other units, and explicit values are returned as they were set.
    """
    as_started = broker_configs_of_topics(cluster.settings.configs)
    return [
        row._replace(value=configs[row.name])
        if row.name in configs
        else row._replace(source=ConfigSource.STATIC_BROKER)
        if row.source is ConfigSource.DEFAULT and TOPIC_CONFIGS.by_name[row.name].broker_config in as_started
        else row
        for row in topic_rows(cluster, configs)
    ]


def resource_rows(cluster: Cluster, kind: ConfigResourceType, name: str, definitions: Definitions) -> list[Row]:
    """Return the configs of a group or of a metrics subscription."""
    source = ConfigSource.GROUP if kind is ConfigResourceType.GROUP else ConfigSource.CLIENT_METRICS
    return _rows(cluster, definitions, cluster.resource_configs.of(kind, name), source)


def broker_rows(cluster: Cluster, node: Node | None) -> list[Row]:
    """Return a broker's configs; None: the dynamic defaults of all brokers."""
    if node is None:
        return [
            Row(name, value, DYNAMIC_BROKER_CONFIGS.by_name[name].type, ConfigSource.DYNAMIC_DEFAULT_BROKER, synonyms)
            for name, value in cluster.resource_configs.of(ConfigResourceType.BROKER, OF_ALL_BROKERS).items()
            if (synonyms := [Synonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER)])
        ]
    its_own = {
        "node.id": str(node.id),
        "advertised.listeners": f"PLAINTEXT://{node.host}:{node.port}",
        "default.replication.factor": str(cluster.brokers.default_replication_factor),
    }
    if node.rack is not None:
        its_own["broker.rack"] = node.rack
    rows = [
        Row(
            name,
            value,
            _OWN_TYPES[name],
            ConfigSource.STATIC_BROKER,
            [Synonym(name, value, ConfigSource.STATIC_BROKER)],
            True,
        )
        for name, value in its_own.items()
    ]
    names = {*effective_settings(), *DYNAMIC_BROKER_CONFIGS.by_name, *_FAMILIES, *cluster.settings.configs}
    for name in sorted(names - set(its_own)):
        synonyms = _of_broker(cluster, name, str(node.id))
        if name in BROKER_THROTTLES:
            if len(synonyms) == 1:
                continue
            synonyms.pop()  # it has no default
        known = broker_configs().get(LISTENER.sub("", name, count=1)) or DYNAMIC_BROKER_CONFIGS.by_name.get(name)
        kind = ConfigType.STRING if known is None else known.type
        is_read_only = name not in DYNAMIC_BROKER_CONFIGS.by_name
        value, origin = (synonyms[0].value, synonyms[0].source) if synonyms else (None, ConfigSource.DEFAULT)
        first = _FAMILIES.get(name, (name,))[0]
        sources = {each.source for each in _of_broker(cluster, first, str(node.id))} if first != name else set()
        if sources & {ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER}:
            value = _defaults(name, None).get(name)  # as in Kafka, which shows that it no longer counts
        if value is not None and name in broker_configs():
            value = broker_configs()[name].written(value)
        rows.append(Row(name, value, kind, origin, synonyms, is_read_only))
    return rows


def _rows(cluster: Cluster, definitions: Definitions, configs: Mapping[str, str], source: ConfigSource) -> list[Row]:
    rows = []
    as_started = broker_configs_of_topics(cluster.settings.configs)
    for name, definition in definitions.by_name.items():
        synonyms = [Synonym(name, definition.written(configs[name]), source)] if name in configs else []
        if definition.broker_config is not None:
            synonyms += _of_broker(cluster, definition.broker_config, OF_ALL_BROKERS, definition.default)
        default = as_started.get(definition.broker_config or "", definition.default)  # a broker's time in other units
        value, origin = (synonyms[0].value, synonyms[0].source) if synonyms else (default, ConfigSource.DEFAULT)
        value = definition.written(value)
        if name == _RETENTION_MS and int(value) < _NO_END_MS:
            value = str(_NO_END_MS)  # brokers may have other negative times, which become this one for topics
        rows.append(Row(name, value, definition.type, origin, synonyms))
    return rows


def _of_broker(cluster: Cluster, name: str, node_id: str, default: str | None = None) -> list[Synonym]:
    """Return the sources of a broker config, the effective one first. Mirrors ``ConfigHelper.configSynonyms``."""
    of_one, of_all = (
        cluster.resource_configs.of(ConfigResourceType.BROKER, each) for each in (node_id, OF_ALL_BROKERS)
    )
    places = [
        (ConfigSource.DYNAMIC_BROKER, of_one if node_id != OF_ALL_BROKERS else {}),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, of_all),
        (ConfigSource.STATIC_BROKER, _static(cluster.settings, name)),
        (ConfigSource.DEFAULT, _defaults(name, default)),
    ]
    names = _FAMILIES.get(name, (name,))
    found = [Synonym(each, configs[each], source) for source, configs in places for each in names if each in configs]
    return list(dropwhile(lambda synonym: synonym.name != name, found))


def _static(settings: BrokerSettings, name: str) -> Mapping[str, str]:
    """Return the brokers' initial settings, by Kafka's names or by ours."""
    if name not in effective_settings():
        return settings.configs
    value = described(settings)[name]
    is_given = name in settings.configs or value != described(BrokerSettings())[name]
    return {name: value} if is_given else {}


def _defaults(name: str, default: str | None) -> Mapping[str, str]:
    if name in effective_settings():
        return {name: described(BrokerSettings())[name]}
    family = DYNAMIC_BROKER_CONFIGS.by_name.get(_FAMILIES.get(name, (name,))[0])
    if family is not None and family.others:
        return {each.name: each.default for each in family.others if each.default is not None}
    known = family or broker_configs().get(name)
    if known is None:
        return {} if default is None else {name: default}
    return {name: known.default} if known.has_default else {}
