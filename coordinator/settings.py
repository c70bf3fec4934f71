"""A broker's settings by the names that Kafka's own brokers give them, as in their server.properties.

One table for both ways: `configured` reads what somebody wrote, `described` gives what a broker runs with, as
DescribeConfigs does. Mirrors the definitions in Kafka's `GroupCoordinatorConfig` and `ServerLogConfigs`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

from loadwise.coordinator.configs.broker_configs import broker_configs
from loadwise.coordinator.configs.definitions import INT_MAX, LONG_MAX, ConfigType
from loadwise.coordinator.configs.group_bounds import BOUNDS
from loadwise.coordinator.configs.topic_configs import TOPIC_CONFIGS
from loadwise.coordinator.errors import BadAssignorError, BadSettingError
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits, MigrationPolicy
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.share_limits import ShareGroupLimits
from loadwise.coordinator.groups.streams_limits import StreamsGroupLimits
from loadwise.coordinator.security.broker_configs import LISTENER
from loadwise.coordinator.security.broker_configs import NAMES as SECURITY_CONFIGS
from loadwise.coordinator.transactions.coordinator import TransactionLimits

log = logging.getLogger("loadwise.coordinator")

_SHORT_MAX = 2**15 - 1
_WHOLE = re.compile(r"[+-]?[0-9]+")
"""What Java's ``parseInt`` takes."""

REBALANCE_PROTOCOLS = ("classic", "consumer", "streams")
"""The kinds of groups that can be switched off; there are share groups in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """How the broker behaves; the names in brackets are Kafka's, and so are the values unless another is named."""

    auto_create_topics: bool = True
    """Whether asking for a topic makes it (auto.create.topics.enable)."""
    default_partitions: int = 1
    """Partitions of a topic whose creator gives no number (num.partitions)."""
    default_replication_factor: int | None = None
    """Replicas of a partition whose creator gives no number (default.replication.factor).

    None: three, or as many as there are brokers; Kafka: 1. With more than there are brokers no topic can be made so.
    """
    delete_topics: bool = True
    """Whether topics may be deleted (delete.topic.enable)."""
    offsets_replication_factor: int = 3
    """Replicas of ``__consumer_offsets``, if there are so many brokers (offsets.topic.replication.factor)."""
    max_batch_bytes: int = 1_048_588
    """Largest record batch that is accepted (message.max.bytes)."""
    max_request_bytes: int = 100 * 1024 * 1024
    """A larger request closes its connection (socket.request.max.bytes)."""
    connections_max_idle_ms: int = 600_000
    """How long a connection may be silent before it is closed; -1: for ever (connections.max.idle.ms)."""
    max_partitions: int = 100_000
    """Most partitions of all topics together; Kafka has no such limit."""
    max_kept_bytes: int = 1024 * 1024 * 1024
    """Most bytes of records of all partitions together; Kafka deletes the oldest instead (log.retention.bytes)."""
    producer_id_expiration_ms: int = 86_400_000
    """How long a partition remembers a producer that writes nothing more (producer.id.expiration.ms)."""
    retention_check_interval_ms: int = 300_000
    """How often records are looked for that retention lets go (log.retention.check.interval.ms)."""
    rebalance_protocols: Sequence[str] = REBALANCE_PROTOCOLS
    """Kinds of groups that there can be (group.coordinator.rebalance.protocols)."""
    groups: GroupLimits = field(default_factory=GroupLimits)
    """What holds for all groups of the classic protocol."""
    consumer_groups: ConsumerGroupLimits = field(default_factory=ConsumerGroupLimits)
    """What holds for all groups of the consumer protocol (KIP-848)."""
    share_groups: ShareGroupLimits = field(default_factory=ShareGroupLimits)
    """What holds for all share groups (KIP-932)."""
    streams_groups: StreamsGroupLimits = field(default_factory=StreamsGroupLimits)
    """What holds for all streams groups (KIP-1071)."""
    transactions: TransactionLimits = field(default_factory=TransactionLimits)
    """What holds for all transactions."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """All that was given by Kafka's names: `configured` puts them here. Defaults of topics, as log.retention.ms, are
    here alone, and what is here and has no effect is described to clients."""


Part: TypeAlias = Literal["groups", "consumer_groups", "share_groups", "streams_groups", "transactions"]
"""A part of `BrokerSettings`."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a setting stands in `BrokerSettings`, and how it is written."""

    part: Part | None
    """The part of `BrokerSettings` that has it; None: it has it itself."""
    field: str
    type: ConfigType
    read: Callable[[str], Any]
    """Raises `ValueError` with what it takes."""

    group_field: str | None = None
    """The field of `GroupLimits` that follows it, as a topic's setting follows its broker's."""

    def of(self, settings: BrokerSettings) -> object:
        """Its value in these settings."""
        return getattr(settings if self.part is None else getattr(settings, self.part), self.field)

    def put(self, settings: BrokerSettings, value: Any) -> BrokerSettings:
        """The same settings but for this one."""
        change: dict[str, Any] = {self.field: value}
        if self.part is not None:
            change = {self.part: replace(getattr(settings, self.part), **change)}
        if self.group_field is not None:
            change["groups"] = replace(settings.groups, **{self.group_field: value})
        return replace(settings, **change)


def _whole(part: Part | None, field: str, least: int, most: int = INT_MAX) -> Setting:
    def read(text: str) -> int:
        # Not int() alone: it takes "1_000" and digits that are not ASCII's.
        if not (_WHOLE.fullmatch(text) and least <= int(text) <= most):
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return Setting(part, field, ConfigType.INT, read)


def _idle_ms(text: str) -> int:
    return -1 if text == "-1" else int(_whole(None, "", 1, LONG_MAX).read(text))


def _boolean(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("true or false")
    return text.lower() == "true"


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in map(str.strip, text.split(",")) if name)


def _protocols(text: str) -> tuple[str, ...]:
    found = tuple(name.lower() for name in _names(text))
    if "classic" not in found or not set(found) <= {*REBALANCE_PROTOCOLS, "share"}:
        raise ValueError(f"a list of {', '.join(REBALANCE_PROTOCOLS)}, in which classic cannot be missing")
    return found


def _policy(text: str) -> MigrationPolicy:
    try:
        return MigrationPolicy(text.lower())
    except ValueError:
        raise ValueError(f"one of {', '.join(each.value for each in MigrationPolicy)}") from None


SETTINGS: Mapping[str, Setting] = {
    "auto.create.topics.enable": Setting(None, "auto_create_topics", ConfigType.BOOLEAN, _boolean),
    "default.replication.factor": _whole(None, "default_replication_factor", 1),
    "delete.topic.enable": Setting(None, "delete_topics", ConfigType.BOOLEAN, _boolean),
    "connections.max.idle.ms": Setting(None, "connections_max_idle_ms", ConfigType.LONG, _idle_ms),
    "group.consumer.assignment.interval.ms": _whole("consumer_groups", "assignment_interval_ms", 0),
    "group.consumer.assignors": Setting("consumer_groups", "assignors", ConfigType.LIST, _names),
    "group.consumer.heartbeat.interval.ms": _whole("consumer_groups", "heartbeat_interval_ms", 1),
    "group.consumer.max.size": _whole("consumer_groups", "max_size", 1),
    "group.consumer.migration.policy": Setting("consumer_groups", "migration_policy", ConfigType.STRING, _policy),
    "group.consumer.regex.refresh.interval.ms": _whole("consumer_groups", "regex_refresh_interval_ms", 10_000),
    "group.consumer.session.timeout.ms": _whole("consumer_groups", "session_timeout_ms", 1),
    "group.coordinator.rebalance.protocols": Setting(None, "rebalance_protocols", ConfigType.LIST, _protocols),
    "group.initial.rebalance.delay.ms": _whole("groups", "initial_rebalance_delay_ms", 0),
    "group.max.session.timeout.ms": _whole("groups", "max_session_timeout_ms", 1),
    "group.max.size": _whole("groups", "max_size", 1),
    "group.min.session.timeout.ms": _whole("groups", "min_session_timeout_ms", 1),
    "group.share.assignment.interval.ms": _whole("share_groups", "assignment_interval_ms", 0),
    "group.share.delivery.count.limit": _whole("share_groups", "delivery_count_limit", 2),
    "group.share.heartbeat.interval.ms": _whole("share_groups", "heartbeat_interval_ms", 1),
    "group.share.max.share.sessions": _whole("share_groups", "max_share_sessions", 1),
    "group.share.max.size": _whole("share_groups", "max_size", 1),
    "group.share.partition.max.record.locks": _whole("share_groups", "partition_max_record_locks", 100),
    "group.share.record.lock.duration.ms": _whole("share_groups", "record_lock_duration_ms", 1),
    "group.share.session.timeout.ms": _whole("share_groups", "session_timeout_ms", 1),
    "group.streams.assignment.interval.ms": _whole("streams_groups", "assignment_interval_ms", 0),
    "group.streams.heartbeat.interval.ms": _whole("streams_groups", "heartbeat_interval_ms", 1),
    "group.streams.initial.rebalance.delay.ms": _whole("streams_groups", "initial_rebalance_delay_ms", 0),
    "group.streams.max.size": _whole("streams_groups", "max_size", 1),
    "group.streams.num.standby.replicas": _whole("streams_groups", "num_standby_replicas", 0),
    "group.streams.session.timeout.ms": _whole("streams_groups", "session_timeout_ms", 1),
    "log.retention.check.interval.ms": _whole(None, "retention_check_interval_ms", 1, LONG_MAX),
    "message.max.bytes": replace(_whole(None, "max_batch_bytes", 0), group_field="max_record_bytes"),
    "offsets.retention.check.interval.ms": _whole("groups", "offsets_retention_check_interval_ms", 1, LONG_MAX),
    "offsets.topic.replication.factor": _whole(None, "offsets_replication_factor", 1, _SHORT_MAX),
    "offsets.retention.minutes": _whole("groups", "offsets_retention_minutes", 1),
    "num.partitions": _whole(None, "default_partitions", 1),
    "producer.id.expiration.ms": _whole(None, "producer_id_expiration_ms", 1),
    "socket.request.max.bytes": _whole(None, "max_request_bytes", 1),
    "transaction.max.timeout.ms": _whole("transactions", "max_timeout_ms", 1),
    "transactional.id.expiration.ms": _whole("transactions", "id_expiration_ms", 1),
}
"""Every setting of Kafka's that means something here, by its name, but for the defaults of topics."""

_OF_TOPICS = frozenset(
    name
    for each in TOPIC_CONFIGS.by_name.values()
    if each.broker_config is not None
    for name in (each.broker_config, *(other.name for other in each.others))
)
"""The brokers' configs that are defaults of topics'."""


def configured(
    settings: BrokerSettings, configs: Mapping[str, str], *, written: Mapping[str, str] | None = None
) -> BrokerSettings:
    """These settings with some of them changed, by Kafka's names; one line of the log names those without an effect.

    ``written`` are names as whoever gave them has written them, for errors and the log. Raises `BadSettingError` for a
    name that no broker of Kafka's has, with the nearest one, and for a value that cannot be.
    """
    words = {name: (written or {}).get(name, name) for name in configs}
    for name, text in configs.items():
        setting = SETTINGS.get(name)
        if setting is None:
            _check(name, words[name], text)
            continue
        try:
            settings = setting.put(settings, setting.read(text.strip()))
        except BadAssignorError as problem:
            raise BadSettingError(f"{words[name]}: {problem}") from problem
        except ValueError as problem:
            raise BadSettingError(f"{words[name]} is {text!r}; it takes {problem}") from problem
    without_effect = [words[name] for name in configs if not has_effect(name)]
    if without_effect:
        log.warning("settings of Kafka's brokers that have no effect here: %s", ", ".join(without_effect))
    return replace(settings, configs={**settings.configs, **{name: text.strip() for name, text in configs.items()}})


def is_known(name: str) -> bool:
    """Whether a broker of Kafka's can be configured with it, or a coordinator."""
    plain = LISTENER.sub("", name, count=1)
    return plain in broker_configs() or plain in SECURITY_CONFIGS


def has_effect(name: str) -> bool:
    """Whether a config of Kafka's brokers changes anything here."""
    return name in SETTINGS or name in _OF_TOPICS or name in BOUNDS


def _check(name: str, word: str, text: str) -> None:
    """Raise `BadSettingError` for what no broker of Kafka's takes."""
    definition = broker_configs().get(LISTENER.sub("", name, count=1))
    if definition is None:
        near = get_close_matches(name, (*broker_configs(), *SECURITY_CONFIGS), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise BadSettingError(f"there is no setting {word} in Kafka{hint}")
    problem = definition.refusal(text)
    if problem is not None:
        raise BadSettingError(problem if word == name else f"{word}: {problem}")


def described(settings: BrokerSettings) -> dict[str, str]:
    """All that are decided as Kafka's tools show them, by name."""
    values = ((name, setting.of(settings)) for name, setting in SETTINGS.items())
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
