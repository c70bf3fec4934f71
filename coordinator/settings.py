"""The broker's settings under their names in Kafka's server.properties.

One table serves both directions, and each feature has a part of it. `configured` reads settings, and `described`
returns the current values for DescribeConfigs. Mirrors Kafka's `GroupCoordinatorConfig` and `ServerLogConfigs`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeVar

from loadwise.coordinator.configs.broker_configs import LISTENER, broker_configs
from loadwise.coordinator.configs.definitions import LONG_MAX, ConfigType
from loadwise.coordinator.configs.setting import Setting, setting_of, whole
from loadwise.coordinator.configs.topic_configs import TOPIC_CONFIGS
from loadwise.coordinator.errors import BadAssignorError, BadSettingError
from loadwise.coordinator.features import features
from loadwise.coordinator.group_configs import bounds
from loadwise.coordinator.groups.consumer.limits import NUMBERS, ConsumerGroupLimits, MigrationPolicy
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.nearest import did_you_mean

log = logging.getLogger("loadwise.coordinator")

_SHORT_MAX = 2**15 - 1
T = TypeVar("T")

REBALANCE_PROTOCOLS = ("classic", "consumer", "streams")
"""The kinds of groups that can be switched off; share groups are always on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """How the broker behaves. Kafka's names are in brackets; defaults are Kafka's unless another is named."""

    auto_create_topics: bool = True
    """Whether a metadata request creates a missing topic (auto.create.topics.enable)."""
    default_partitions: int = 1
    """Partitions of a topic that is created without a number (num.partitions)."""
    default_replication_factor: int | None = None
    """Replicas of a partition that is created without a number (default.replication.factor).

    None means three, or the number of brokers if that is smaller; Kafka's default is 1. If it exceeds the number of
    brokers, topics without a number cannot be created.
    """
    delete_topics: bool = True
    """Whether topics may be deleted (delete.topic.enable)."""
    offsets_replication_factor: int = 3
    """Replicas of ``__consumer_offsets``, at most one per broker (offsets.topic.replication.factor)."""
    max_batch_bytes: int = 1_048_588
    """Size of the largest record batch that is accepted (message.max.bytes)."""
    max_request_bytes: int = 100 * 1024 * 1024
    """Size of the largest request; a larger one closes its connection (socket.request.max.bytes)."""
    connections_max_idle_ms: int = 600_000
    """How long a connection may be idle before it is closed; -1: forever (connections.max.idle.ms)."""
    max_partitions: int = 100_000
    """Maximum number of partitions of all topics together; Kafka has no such limit."""
    max_kept_bytes: int = 1024 * 1024 * 1024
    """Maximum bytes of records in all partitions; Kafka deletes the oldest instead (log.retention.bytes)."""
    producer_id_expiration_ms: int = 86_400_000
    """How long a partition keeps the state of an idle producer (producer.id.expiration.ms)."""
    retention_check_interval_ms: int = 300_000
    """How often expired records are deleted (log.retention.check.interval.ms)."""
    rebalance_protocols: Sequence[str] = REBALANCE_PROTOCOLS
    """The kinds of groups that are enabled (group.coordinator.rebalance.protocols)."""
    groups: GroupLimits = field(default_factory=GroupLimits)
    """Settings of all groups of the classic protocol."""
    consumer_groups: ConsumerGroupLimits = field(default_factory=ConsumerGroupLimits)
    """Settings of all groups of the consumer protocol (KIP-848)."""
    limits: Sequence[object] = ()
    """Settings of features: `ShareGroupLimits`, `StreamsGroupLimits`, `TransactionLimits`."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """Everything that was set under Kafka's names; `configured` fills it.

    Topic defaults such as log.retention.ms are only here. Settings without an effect are here too, so that
    DescribeConfigs returns them.
    """

    def limits_of(self, kind: type[T]) -> T:
        """Return the limits of a feature by their class, or its defaults."""
        return next((each for each in self.limits if isinstance(each, kind)), None) or kind()

    def _part(self, part: str | type | None) -> Any:
        if part is None:
            return self
        return getattr(self, part) if isinstance(part, str) else self.limits_of(part)

    def value(self, setting: Setting) -> object:
        """Return the value of a setting."""
        return getattr(self._part(setting.part), setting.field)

    def replaced(self, setting: Setting, value: Any) -> BrokerSettings:
        """Return the settings with another value of one."""
        part = setting.part
        changed: dict[str, Any] = {setting.field: value}
        if isinstance(part, str):
            changed = {part: replace(getattr(self, part), **changed)}
        elif part is not None:
            by_class = {type(each): each for each in self.limits} | {part: replace(self._part(part), **changed)}
            given = (each for kind, each in by_class.items() if each != kind())
            changed = {"limits": tuple(sorted(given, key=lambda each: type(each).__name__))}
        if setting.group_field is not None:
            changed["groups"] = replace(self.groups, **{setting.group_field: value})
        return replace(self, **changed)


def _idle_ms(text: str) -> int:
    return -1 if text == "-1" else int(whole(None, "", 1, LONG_MAX).read(text))


def _boolean(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("true or false")
    return text.lower() == "true"


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in map(str.strip, text.split(",")) if name)


def _protocols(text: str) -> tuple[str, ...]:
    found = tuple(name.lower() for name in _names(text))
    if "classic" not in found or not set(found) <= {*REBALANCE_PROTOCOLS, "share"}:
        raise ValueError(f"a list of {', '.join(REBALANCE_PROTOCOLS)}, including classic")
    return found


def _policy(text: str) -> MigrationPolicy:
    try:
        return MigrationPolicy(text.lower())
    except ValueError:
        raise ValueError(f"one of {', '.join(each.value for each in MigrationPolicy)}") from None


_KERNELS: Mapping[str, Setting] = {
    "auto.create.topics.enable": Setting(None, "auto_create_topics", ConfigType.BOOLEAN, _boolean),
    "default.replication.factor": whole(None, "default_replication_factor", 1),
    "delete.topic.enable": Setting(None, "delete_topics", ConfigType.BOOLEAN, _boolean),
    "connections.max.idle.ms": Setting(None, "connections_max_idle_ms", ConfigType.LONG, _idle_ms),
    **{each.of_brokers: setting_of(each, "consumer_groups") for each in NUMBERS},
    "group.consumer.assignors": Setting("consumer_groups", "assignors", ConfigType.LIST, _names),
    "group.consumer.max.size": whole("consumer_groups", "max_size", 1),
    "group.consumer.migration.policy": Setting("consumer_groups", "migration_policy", ConfigType.STRING, _policy),
    "group.consumer.regex.refresh.interval.ms": whole("consumer_groups", "regex_refresh_interval_ms", 10_000),
    "group.coordinator.rebalance.protocols": Setting(None, "rebalance_protocols", ConfigType.LIST, _protocols),
    "group.initial.rebalance.delay.ms": whole("groups", "initial_rebalance_delay_ms", 0),
    "group.max.session.timeout.ms": whole("groups", "max_session_timeout_ms", 1),
    "group.max.size": whole("groups", "max_size", 1),
    "group.min.session.timeout.ms": whole("groups", "min_session_timeout_ms", 1),
    "log.retention.check.interval.ms": whole(None, "retention_check_interval_ms", 1, LONG_MAX),
    "message.max.bytes": replace(whole(None, "max_batch_bytes", 0), group_field="max_record_bytes"),
    "offsets.retention.check.interval.ms": whole("groups", "offsets_retention_check_interval_ms", 1, LONG_MAX),
    "offsets.topic.replication.factor": whole(None, "offsets_replication_factor", 1, _SHORT_MAX),
    "offsets.retention.minutes": whole("groups", "offsets_retention_minutes", 1),
    "num.partitions": whole(None, "default_partitions", 1),
    "producer.id.expiration.ms": whole(None, "producer_id_expiration_ms", 1),
    "socket.request.max.bytes": whole(None, "max_request_bytes", 1),
}
"""The kernel's settings by Kafka's names."""

_OF_TOPICS = frozenset(
    name
    for each in TOPIC_CONFIGS.by_name.values()
    if each.broker_config is not None
    for name in (each.broker_config, *(other.name for other in each.others))
)
"""Broker configs that are defaults of topic configs."""


@cache
def effective_settings() -> Mapping[str, Setting]:
    """Return every setting of Kafka's that has an effect here, by name, except topic defaults."""
    return {**_KERNELS, **{name: each for feature in features() for name, each in feature.settings.items()}}


def configured(
    settings: BrokerSettings, configs: Mapping[str, str], *, written: Mapping[str, str] | None = None
) -> BrokerSettings:
    """Return these settings with some of them changed, by Kafka's names.

    Logs the settings without an effect in one warning. ``written`` has the names as the caller wrote them, for errors
    and the log. Raises `BadSettingError` for an unknown name, with the nearest known one, and for a value that is not
    valid.
    """
    words = {name: (written or {}).get(name, name) for name in configs}
    for name, text in configs.items():
        setting = effective_settings().get(name)
        if setting is None:
            _check(name, words[name], text)
            continue
        try:
            settings = settings.replaced(setting, setting.read(text.strip()))
        except BadAssignorError as problem:
            raise BadSettingError(f"{words[name]}: {problem}") from problem
        except ValueError as problem:
            raise BadSettingError(f"{words[name]} is {text!r}; it takes {problem}") from problem
    without_effect = [words[name] for name in configs if not has_effect(name)]
    if without_effect:
        log.warning("Kafka broker settings that have no effect here: %s", ", ".join(without_effect))
    return replace(settings, configs={**settings.configs, **{name: text.strip() for name, text in configs.items()}})


def _others() -> list[str]:
    return [name for feature in features() for name in feature.other_settings]


def is_known(name: str) -> bool:
    """Return whether it is a setting of a Kafka broker or of the coordinator."""
    plain = LISTENER.sub("", name, count=1)
    return plain in broker_configs() or plain in _others()


def nearest_setting(name: str, shown: Callable[[str], str] = str) -> str:
    """Return the hint with the setting that a misspelt one was probably meant to be, as it is shown."""
    return did_you_mean(name, (*broker_configs(), *_others()), shown)


def has_effect(name: str) -> bool:
    """Return whether this broker config changes anything here."""
    return name in effective_settings() or name in _OF_TOPICS or name in bounds()


def _check(name: str, word: str, text: str) -> None:
    """Raise `BadSettingError` for a name that no Kafka broker accepts."""
    definition = broker_configs().get(LISTENER.sub("", name, count=1))
    if definition is None:
        raise BadSettingError(f"Kafka has no setting {word}{nearest_setting(name)}")
    problem = definition.refusal(text)
    if problem is not None:
        raise BadSettingError(problem if word == name else f"{word}: {problem}")


def described(settings: BrokerSettings) -> dict[str, str]:
    """Return all settings by name, in the format of Kafka's tools."""
    values = ((name, settings.value(setting)) for name, setting in effective_settings().items())
    return {name: _shown(value) for name, value in values if value is not None}


def _shown(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case MigrationPolicy():
            return value.value
        case tuple() | list():
            return ",".join(value)
        case _:
            return str(value)
