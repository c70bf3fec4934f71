"""A broker's settings by the names that Kafka's own brokers give them, as in their server.properties.

One table for both ways: `configured` reads what somebody wrote, `described` gives what a broker runs with, as
DescribeConfigs does. Mirrors the definitions in Kafka's `GroupCoordinatorConfig` and `ServerLogConfigs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from loadwise.coordinator.configs.definitions import ConfigType
from loadwise.coordinator.errors import BadAssignorError, BadSettingError
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits, MigrationPolicy
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.share_limits import ShareGroupLimits
from loadwise.coordinator.groups.streams_limits import StreamsGroupLimits
from loadwise.coordinator.security.broker_configs import NAMES as SECURITY_CONFIGS
from loadwise.coordinator.transactions.coordinator import TransactionLimits

_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """How the broker behaves; the names in brackets are Kafka's, and so are the values unless another is named."""

    auto_create_topics: bool = True
    """Whether asking for a topic makes it (auto.create.topics.enable)."""
    default_partitions: int = 1
    """Partitions of a topic whose creator gives no number (num.partitions)."""
    max_batch_bytes: int = 1_048_588
    """Largest record batch that is accepted (message.max.bytes)."""
    max_request_bytes: int = 100 * 1024 * 1024
    """A larger request closes its connection (socket.request.max.bytes)."""
    connections_max_idle_ms: int = 600_000
    """How long a connection may be silent before it is closed (connections.max.idle.ms)."""
    max_partitions: int = 100_000
    """Most partitions of all topics together; Kafka has no such limit."""
    max_kept_bytes: int = 1024 * 1024 * 1024
    """Most bytes of records of all partitions together; Kafka deletes the oldest instead (log.retention.bytes)."""
    producer_id_expiration_ms: int = 86_400_000
    """How long a partition remembers a producer that writes nothing more (producer.id.expiration.ms)."""
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


def _whole(part: Part | None, field: str, least: int) -> Setting:
    def read(text: str) -> int:
        # Not int() alone: it takes "1_000" and digits that are not ASCII's.
        if not (text.isascii() and text.isdecimal() and least <= int(text) <= _INT32_MAX):
            raise ValueError(f"a whole number from {least} to {_INT32_MAX}")
        return int(text)

    return Setting(part, field, ConfigType.INT, read)


def _boolean(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("true or false")
    return text.lower() == "true"


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in map(str.strip, text.split(",")) if name)


def _policy(text: str) -> MigrationPolicy:
    try:
        return MigrationPolicy(text.lower())
    except ValueError:
        raise ValueError(f"one of {', '.join(each.value for each in MigrationPolicy)}") from None


SETTINGS: Mapping[str, Setting] = {
    "auto.create.topics.enable": Setting(None, "auto_create_topics", ConfigType.BOOLEAN, _boolean),
    "connections.max.idle.ms": _whole(None, "connections_max_idle_ms", 1),
    "group.consumer.assignment.interval.ms": _whole("consumer_groups", "assignment_interval_ms", 0),
    "group.consumer.assignors": Setting("consumer_groups", "assignors", ConfigType.LIST, _names),
    "group.consumer.heartbeat.interval.ms": _whole("consumer_groups", "heartbeat_interval_ms", 1),
    "group.consumer.max.size": _whole("consumer_groups", "max_size", 1),
    "group.consumer.migration.policy": Setting("consumer_groups", "migration_policy", ConfigType.STRING, _policy),
    "group.consumer.regex.refresh.interval.ms": _whole("consumer_groups", "regex_refresh_interval_ms", 10_000),
    "group.consumer.session.timeout.ms": _whole("consumer_groups", "session_timeout_ms", 1),
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
    "message.max.bytes": replace(_whole(None, "max_batch_bytes", 0), group_field="max_record_bytes"),
    "offsets.retention.check.interval.ms": _whole("groups", "offsets_retention_check_interval_ms", 1),
    "offsets.retention.minutes": _whole("groups", "offsets_retention_minutes", 1),
    "num.partitions": _whole(None, "default_partitions", 1),
    "producer.id.expiration.ms": _whole(None, "producer_id_expiration_ms", 1),
    "socket.request.max.bytes": _whole(None, "max_request_bytes", 1),
    "transaction.max.timeout.ms": _whole("transactions", "max_timeout_ms", 1),
    "transactional.id.expiration.ms": _whole("transactions", "id_expiration_ms", 1),
}
"""Every setting of Kafka's that means something here, by its name."""


def configured(settings: BrokerSettings, configs: Mapping[str, str]) -> BrokerSettings:
    """These settings with some of them changed, by Kafka's names.

    Raises `BadSettingError` for a name that is not there and a value that cannot be.
    """
    for name, text in configs.items():
        setting = SETTINGS.get(name)
        if setting is None:
            raise BadSettingError(
                f"there is no setting {name!r} here; there are: {', '.join((*SETTINGS, *SECURITY_CONFIGS))}"
            )
        try:
            settings = setting.put(settings, setting.read(text))
        except BadAssignorError as problem:
            raise BadSettingError(f"{name}: {problem}") from problem
        except ValueError as problem:
            raise BadSettingError(f"{name} is {text!r}; it takes {problem}") from problem
    return settings


def described(settings: BrokerSettings) -> dict[str, str]:
    """All of them as Kafka's tools show them, by name."""
    return {name: _shown(setting.of(settings)) for name, setting in SETTINGS.items()}


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
