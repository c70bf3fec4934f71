"""The resources that have configs, those of client metrics, and what was set of brokers, groups and them.

Topics keep their own. Mirrors Kafka's ``ConfigurationControlManager`` and ``ClientMetricsConfigs``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType

from loadwise.coordinator.configs.broker_configs import not_none
from loadwise.coordinator.configs.definitions import (
    LONG_MAX,
    ConfigType,
    Definition,
    Definitions,
    at_least,
    between,
    items,
)
from loadwise.coordinator.configs.topic_configs import TOPIC_CONFIGS
from loadwise.coordinator.keeper import NOTHING, Keeper, Place


class ConfigResourceType(IntEnum):
    """What has configs (``ConfigResource.Type``)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


_MATCHED = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
"""What a subscription to clients' metrics may be for."""


def _match_problem(value: str) -> str | None:
    wrong = [each for each in items(value) if each.partition("=")[0].strip() not in _MATCHED or "=" not in each]
    return f"Illegal client matching pattern: {wrong[0]}" if wrong else None


CLIENT_METRICS_CONFIGS = Definitions(
    "client metrics",
    [
        Definition(
            name="interval.ms",
            type=ConfigType.INT,
            default="300000",
            check=between(100, 3_600_000),
            words="Invalid value {value} for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        Definition(name="match", type=ConfigType.LIST, default="", check=_match_problem, words="{problem}"),
        Definition(name="metrics", type=ConfigType.LIST, default=""),
    ],
)
"""What a subscription to clients' metrics has (KIP-714)."""

BROKER_THROTTLES = frozenset(
    {
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
"""Rates that brokers have only while they are set, as kafka-reassign-partitions.sh sets and clears them."""
_CHECKED_OTHERWISE: Mapping[str, Callable[[str], str | None]] = {
    "log.flush.interval.ms": lambda _: None,
    "log.retention.ms": not_none,
}
"""Brokers' configs that may have other values than those of topics whose defaults they are."""

DYNAMIC_BROKER_CONFIGS = Definitions(
    "broker",
    [
        *(
            replace(
                each,
                name=each.broker_config,
                broker_config=None,
                check=_CHECKED_OTHERWISE.get(each.broker_config, each.check),
            )
            for each in TOPIC_CONFIGS.by_name.values()
            if each.broker_config is not None
        ),
        *(
            Definition(name=name, type=ConfigType.LONG, default=str(LONG_MAX), check=at_least(0))
            for name in sorted(BROKER_THROTTLES)
        ),
    ],
)
"""What brokers can change while they run: the defaults of topics, and rates that are kept without a meaning."""

OF_ALL_BROKERS = ""
"""The name of the resource whose configs hold for every broker."""


# With eligible leader replicas, as 4.3 has them, Kafka sets this one itself when a cluster begins (KIP-966).
_SET_FROM_THE_BEGINNING = "min.insync.replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigsRecord:
    """What was set of a resource, whenever that changes (Kafka's ``ConfigRecord``, all of a resource in one)."""

    kind: ConfigResourceType
    name: str
    configs: Mapping[str, str]

    @property
    def place(self) -> Place:
        """Where it is kept."""
        return ("configs", self.kind.name, self.name)


class ResourceConfigs:
    """What was set of each resource but topics, by its type and name."""

    def __init__(self, keeper: Keeper = NOTHING, as_started: Mapping[str, str] = MappingProxyType({})) -> None:
        """``as_started`` are the configs at the brokers' start."""
        self._keeper = keeper
        first = as_started.get(_SET_FROM_THE_BEGINNING, "1")
        self._first = {(ConfigResourceType.BROKER, OF_ALL_BROKERS): {_SET_FROM_THE_BEGINNING: first}}
        self._set: dict[tuple[ConfigResourceType, str], Mapping[str, str]] = {**self._first}

    def of(self, kind: ConfigResourceType, name: str) -> Mapping[str, str]:
        """The configs that were set for a resource."""
        return self._set.get((kind, name), {})

    def put(self, kind: ConfigResourceType, name: str, configs: Mapping[str, str]) -> None:
        """Set a resource's configs, all of them; none forgets it."""
        self._set.pop((kind, name), None)
        if configs:
            self._set[kind, name] = dict(configs)
        record = ConfigsRecord(kind=kind, name=name, configs=dict(configs))
        if configs == self._first.get((kind, name), {}):
            self._keeper.drop(record.place)
        else:
            self._keeper.put(record.place, record)

    def records(self) -> Iterator[ConfigsRecord]:
        """What rebuilds it: what differs from the beginning."""
        for kind, name in {**self._first, **self._set}:
            configs = self.of(kind, name)
            if configs != self._first.get((kind, name), {}):
                yield ConfigsRecord(kind=kind, name=name, configs=configs)

    def load(self, records: Iterable[ConfigsRecord]) -> None:
        """Take these in."""
        for record in records:
            self._set.pop((record.kind, record.name), None)
            if record.configs:
                self._set[record.kind, record.name] = dict(record.configs)

    def names(self, kind: ConfigResourceType) -> list[str]:
        """The resources of a type that have configs of their own."""
        return [name for each, name in self._set if each is kind]
