"""Limits of share groups (KIP-932), under Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from loadwise.coordinator.configs.definitions import ConfigType, Definition, one_of
from loadwise.coordinator.setting import Setting, bounds_of_times, group_number, numbers_of_group, whole
from loadwise.coordinator.share.reset_strategies import is_reset_strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupLimits:
    """Limits of a share group. Kafka's names are in brackets; all values but two are Kafka's."""

    assignment_interval_ms: int = 0
    """Minimum time between two assignments (group.share.assignment.interval.ms; Kafka: 1000)."""
    delivery_count_limit: int = 5
    """Maximum number of deliveries of a record (group.share.delivery.count.limit)."""
    heartbeat_interval_ms: int = 500
    """How often members send heartbeats (group.share.heartbeat.interval.ms; Kafka: 5000)."""
    session_timeout_ms: int = 45_000
    """Session timeout of members (group.share.session.timeout.ms)."""
    max_size: int = 200
    """Maximum members of a group (group.share.max.size)."""
    max_share_sessions: int = 2000
    """Maximum share sessions of one broker (group.share.max.share.sessions)."""
    partition_max_record_locks: int = 2000
    """Maximum records of a partition in flight (group.share.partition.max.record.locks)."""
    record_lock_duration_ms: int = 30_000
    """How long a member's lock on a record lasts (group.share.record.lock.duration.ms)."""
    auto_offset_reset: str = "latest"
    """Where a group starts in a partition (share.auto.offset.reset, only for groups)."""
    committed_only: bool = False
    """Whether open and aborted transactions are skipped (share.isolation.level, only for groups)."""
    renews_locks: bool = True
    """Whether members may renew their locks (share.renew.acknowledge.enable, only for groups)."""

    def of_group(self, configs: Mapping[str, str]) -> ShareGroupLimits:
        """Return the limits of a group with these configs."""
        if not configs:
            return self
        numbers = numbers_of_group(SETTINGS, configs)
        return replace(
            self,
            **numbers,
            auto_offset_reset=configs.get("share.auto.offset.reset", self.auto_offset_reset).strip(),
            committed_only=configs.get("share.isolation.level", "").strip() == "read_committed",
            renews_locks=configs.get("share.renew.acknowledge.enable", "true").strip().lower() == "true",
        )


SETTINGS: Mapping[str, Setting] = {
    "group.share.assignment.interval.ms": whole(ShareGroupLimits, "assignment_interval_ms", 0),
    "group.share.delivery.count.limit": whole(ShareGroupLimits, "delivery_count_limit", 2),
    "group.share.heartbeat.interval.ms": whole(ShareGroupLimits, "heartbeat_interval_ms", 1),
    "group.share.max.share.sessions": whole(ShareGroupLimits, "max_share_sessions", 1),
    "group.share.max.size": whole(ShareGroupLimits, "max_size", 1),
    "group.share.partition.max.record.locks": whole(ShareGroupLimits, "partition_max_record_locks", 100),
    "group.share.record.lock.duration.ms": whole(ShareGroupLimits, "record_lock_duration_ms", 1),
    "group.share.session.timeout.ms": whole(ShareGroupLimits, "session_timeout_ms", 1),
}
"""The brokers' settings by Kafka's names."""
GROUP_CONFIGS = (
    group_number("share.assignment.interval.ms", 1000, 0),
    Definition(
        name="share.auto.offset.reset",
        type=ConfigType.STRING,
        default="latest",
        broker_config="share.auto.offset.reset",
        check=lambda value: None if is_reset_strategy(value) else "unknown strategy",
    ),
    group_number("share.delivery.count.limit", 5, 2),
    group_number("share.heartbeat.interval.ms", 5000, 1),
    Definition(
        name="share.isolation.level",
        type=ConfigType.STRING,
        default="read_uncommitted",
        broker_config="share.isolation.level",
        check=one_of("read_committed", "read_uncommitted"),
    ),
    group_number("share.partition.max.record.locks", 2000, 100),
    group_number("share.record.lock.duration.ms", 30_000, 1000),
    Definition(
        name="share.renew.acknowledge.enable",
        type=ConfigType.BOOLEAN,
        default="true",
        broker_config="share.renew.acknowledge.enable",
    ),
    group_number("share.session.timeout.ms", 45_000, 1),
)
"""What a share group can have of its own."""
GROUP_BOUNDS: Mapping[str, int] = {
    **bounds_of_times("share"),
    "share.delivery.count.limit": 10,
    "share.partition.max.record.locks": 4000,
    "share.record.lock.duration.ms": 60_000,
}
"""Kafka's defaults of the largest values that a group can have."""
