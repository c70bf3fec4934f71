"""The configs of topics, all that Apache Kafka 4.3 describes, and those that act on a log. Mirrors ``LogConfig``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from loadwise.coordinator.configs.definitions import (
    LONG_MAX,
    BadConfigError,
    ConfigType,
    Definition,
    Definitions,
    OtherUnit,
    at_least,
    between,
    items,
    one_of,
)

_REPLICAS = re.compile(r"\d+:\d+")
_BOOLEAN, _STRING, _INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
_HOUR_MS = 3_600_000
_LONG, _DOUBLE, _LIST = ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST


def _cleanup_policy(value: str) -> str | None:
    return None if set(items(value)) <= {"compact", "delete"} else "it takes compact and delete"


def _throttled_replicas(value: str) -> str | None:
    if value == "*" or all(_REPLICAS.fullmatch(each) for each in items(value)):
        return None
    return "it takes * or a list of partition:broker, as 0:1,0:2"


def _gzip_level(value: str) -> str | None:
    return None if value == "-1" or 1 <= int(value) <= 9 else "Value must be between 1 and 9 or equal to -1"


def _of_time(name: str, default: int, broker_config: str, least: int, *others: OtherUnit) -> Definition:
    """A config for which brokers have other ones, as that in hours, which hold there until it is set itself."""
    return replace(_row(name, _LONG, default, broker_config, at_least(least)), others=others)


def _row(name: str, kind: ConfigType, default: object, broker_config: str | None, check: object = None) -> Definition:
    text = str(default).lower() if kind is _BOOLEAN else str(default)
    given = {} if check is None else {"check": check}
    return Definition(name=name, type=kind, default=text, broker_config=broker_config, **given)  # type: ignore[arg-type]


TOPIC_CONFIGS = Definitions(
    "topic",
    [
        _row("cleanup.policy", _LIST, "delete", "log.cleanup.policy", _cleanup_policy),
        _row("compression.gzip.level", _INT, -1, "compression.gzip.level", _gzip_level),
        _row("compression.lz4.level", _INT, 9, "compression.lz4.level", between(1, 17)),
        _row(
            "compression.type",
            _STRING,
            "producer",
            "compression.type",
            one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        ),
        _row("compression.zstd.level", _INT, 3, "compression.zstd.level", between(-131072, 22)),
        _row("delete.retention.ms", _LONG, 86_400_000, "log.cleaner.delete.retention.ms", at_least(0)),
        _row("file.delete.delay.ms", _LONG, 60_000, "log.segment.delete.delay.ms", at_least(0)),
        _row("flush.messages", _LONG, LONG_MAX, "log.flush.interval.messages", at_least(1)),
        _of_time(
            "flush.ms",
            LONG_MAX,
            "log.flush.interval.ms",
            0,
            OtherUnit("log.flush.scheduler.interval.ms", 1, str(LONG_MAX)),
        ),
        _row("follower.replication.throttled.replicas", _LIST, "", None, _throttled_replicas),
        _row("index.interval.bytes", _INT, 4096, "log.index.interval.bytes", at_least(0)),
        _row("leader.replication.throttled.replicas", _LIST, "", None, _throttled_replicas),
        _row("local.retention.bytes", _LONG, -2, "log.local.retention.bytes", at_least(-2)),
        _row("local.retention.ms", _LONG, -2, "log.local.retention.ms", at_least(-2)),
        _row("max.compaction.lag.ms", _LONG, LONG_MAX, "log.cleaner.max.compaction.lag.ms", at_least(1)),
        _row("max.message.bytes", _INT, 1_048_588, "message.max.bytes", at_least(0)),
        _row("message.timestamp.after.max.ms", _LONG, 3_600_000, "log.message.timestamp.after.max.ms", at_least(0)),
        _row("message.timestamp.before.max.ms", _LONG, LONG_MAX, "log.message.timestamp.before.max.ms", at_least(0)),
        _row(
            "message.timestamp.type",
            _STRING,
            "CreateTime",
            "log.message.timestamp.type",
            one_of("CreateTime", "LogAppendTime"),
        ),
        _row("min.cleanable.dirty.ratio", _DOUBLE, 0.5, "log.cleaner.min.cleanable.ratio", between(0, 1)),
        _row("min.compaction.lag.ms", _LONG, 0, "log.cleaner.min.compaction.lag.ms", at_least(0)),
        _row("min.insync.replicas", _INT, 1, "min.insync.replicas", at_least(1)),
        _row("preallocate", _BOOLEAN, default=False, broker_config="log.preallocate"),
        _row("remote.log.copy.disable", _BOOLEAN, default=False, broker_config=None),
        _row("remote.log.delete.on.disable", _BOOLEAN, default=False, broker_config=None),
        _row("remote.storage.enable", _BOOLEAN, default=False, broker_config=None),
        _row("retention.bytes", _LONG, -1, "log.retention.bytes"),
        _of_time(
            "retention.ms",
            604_800_000,
            "log.retention.ms",
            -1,
            OtherUnit("log.retention.minutes", 60_000),
            OtherUnit("log.retention.hours", _HOUR_MS, "168"),
        ),
        _row("segment.bytes", _INT, 1_073_741_824, "log.segment.bytes", at_least(1024 * 1024)),
        _row("segment.index.bytes", _INT, 10_485_760, "log.index.size.max.bytes", at_least(4)),
        _of_time("segment.jitter.ms", 0, "log.roll.jitter.ms", 0, OtherUnit("log.roll.jitter.hours", _HOUR_MS, "0")),
        _of_time("segment.ms", 604_800_000, "log.roll.ms", 1, OtherUnit("log.roll.hours", _HOUR_MS, "168")),
        _row("unclean.leader.election.enable", _BOOLEAN, default=False, broker_config="unclean.leader.election.enable"),
    ],
)
"""By name, with the values that they have unless a topic or a broker has others."""


def broker_configs_of_topics(configs: Mapping[str, str]) -> dict[str, str]:
    """Of a broker's configs those that are defaults of topics', with all times in milliseconds."""
    found = {}
    for definition in TOPIC_CONFIGS.by_name.values():
        name = definition.broker_config
        if name is None:
            continue
        if name in configs:
            found[name] = configs[name]
            continue
        for other in definition.others:
            if other.name in configs:
                found[name] = str(max(int(configs[other.name]) * other.ms, -1))
                break
    return found


_RETAINED = (("log.retention.ms", "log.local.retention.ms"), ("log.retention.bytes", "log.local.retention.bytes"))
RETENTION = tuple(name for pair in _RETAINED for name in pair)
"""The brokers' retention times and sizes, in all and on the broker's own disk."""
_AS_IN_ALL = -2
"""The value of a local one that stands for the value of the other."""


def check_local_retention(configs: Mapping[str, str]) -> None:
    """Raise `BadConfigError` where more would be kept than in all (``DynamicLogConfig.validateReconfiguration``).

    ``configs`` are all that the broker has, with times in milliseconds; those that it lacks have Kafka's defaults.
    """
    defaults = {each.broker_config: each.default for each in TOPIC_CONFIGS.by_name.values()}
    for in_all, on_disk in _RETAINED:
        most, local = (int(configs.get(name, defaults[name])) for name in (in_all, on_disk))
        if most < 0 or local == _AS_IN_ALL:
            continue
        if local < 0:
            raise BadConfigError(f"{on_disk} must not be {local}, which means no limit, because {in_all} is {most}")
        if local > most:
            raise BadConfigError(f"{on_disk} is {local}; it must not exceed {in_all}, which is {most}")


def check_topic_configs(configs: Mapping[str, str]) -> None:
    """Raise `BadConfigError` for what Kafka refuses of a topic's own configs."""
    if not configs:
        return  # the defaults are all right, and thousands of topics are made without any
    TOPIC_CONFIGS.check(configs)
    values = _with_defaults(configs, {})
    if values["remote.storage.enable"].strip().lower() == "true":
        raise BadConfigError("remote.storage.enable=true: there is no tiered storage here")
    if int(values["min.compaction.lag.ms"]) > int(values["max.compaction.lag.ms"]):
        raise BadConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({values['min.compaction.lag.ms']}) > "
            f"max.compaction.lag.ms ({values['max.compaction.lag.ms']})"
        )


class TimestampType(StrEnum):
    """Whose clock a record's timestamp is of."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The configs that act on a log."""

    max_message_bytes: int = 1_048_588
    """Largest record batch that is accepted."""
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = LONG_MAX
    """How much older than now a record may be."""
    timestamp_after_max_ms: int = LONG_MAX
    """How far in the future a record may be."""
    retention_ms: int = -1
    """How old a record may get; -1: as old as it will."""
    retention_bytes: int = -1
    """How large a log may get; -1: as large as it will."""
    is_compacted: bool = False
    """Whether cleanup.policy has compact in it: records need keys."""
    is_deleted: bool = True
    """Whether cleanup.policy has delete in it: retention holds."""
    min_insync_replicas: int = 1
    """How many replicas must be in sync for a producer that waits for all of them."""
    compression: str = "producer"
    """What batches are compressed with; ``producer``: with what they came with."""
    compression_level: int | None = None
    """None: the codec's own default."""

    @classmethod
    def of(cls, configs: Mapping[str, str], broker_configs: Mapping[str, str]) -> LogConfig:
        """A topic's configs: its own before the broker's defaults."""
        return _log_config(tuple(sorted(configs.items())), tuple(sorted(broker_configs.items())))


@lru_cache(maxsize=16)
def _log_config(configs: tuple[tuple[str, str], ...], broker_configs: tuple[tuple[str, str], ...]) -> LogConfig:
    """Kept, as thousands of topics are made with the same configs."""
    values = _with_defaults(dict(configs), dict(broker_configs))
    policies = items(values["cleanup.policy"])
    compression = values["compression.type"].strip()
    level = values.get(f"compression.{compression}.level")
    return LogConfig(
        max_message_bytes=int(values["max.message.bytes"]),
        timestamp_type=TimestampType(values["message.timestamp.type"].strip()),
        timestamp_before_max_ms=int(values["message.timestamp.before.max.ms"]),
        timestamp_after_max_ms=int(values["message.timestamp.after.max.ms"]),
        retention_ms=int(values["retention.ms"]),
        retention_bytes=int(values["retention.bytes"]),
        is_compacted="compact" in policies,
        is_deleted="delete" in policies,
        min_insync_replicas=int(values["min.insync.replicas"]),
        compression=compression,
        compression_level=None if level is None or int(level) == -1 else int(level),
    )


def _with_defaults(configs: Mapping[str, str], broker_configs: Mapping[str, str]) -> dict[str, str]:
    values = {}
    for name, definition in TOPIC_CONFIGS.by_name.items():
        default = broker_configs.get(definition.broker_config or "", definition.default)
        values[name] = configs.get(name, default)
    return values
