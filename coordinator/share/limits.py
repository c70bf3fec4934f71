"""Limits of share groups (KIP-932), under Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from loadwise.coordinator.configs.definitions import ConfigType, Definition, one_of
from loadwise.coordinator.configs.group_numbers import GroupNumber, numbers_of_group, times_of
from loadwise.coordinator.configs.setting import Setting, setting_of, whole
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
        numbers = numbers_of_group(NUMBERS, configs)
        return replace(
            self,
            **numbers,
            auto_offset_reset=configs.get("share.auto.offset.reset", self.auto_offset_reset).strip(),
            committed_only=configs.get("share.isolation.level", "").strip() == "read_committed",
            renews_locks=configs.get("share.renew.acknowledge.enable", "true").strip().lower() == "true",
        )


NUMBERS = (
    *times_of("share"),
    GroupNumber("share.delivery.count.limit", "delivery_count_limit", 5, 2, bound=10),
    GroupNumber("share.partition.max.record.locks", "partition_max_record_locks", 2000, 100, bound=4000),
    GroupNumber(
        "share.record.lock.duration.ms", "record_lock_duration_ms", 30_000, 1000, bound=60_000, least_of_brokers=1
    ),
)
"""What a share group can have of its own, in place of the broker's."""
OTHERS = (
    Definition(
        name="share.auto.offset.reset",
        type=ConfigType.STRING,
        default="latest",
        broker_config="share.auto.offset.reset",
        check=lambda value: None if is_reset_strategy(value) else "unknown strategy",
    ),
    Definition(
        name="share.isolation.level",
        type=ConfigType.STRING,
        default="read_uncommitted",
        broker_config="share.isolation.level",
        check=one_of("read_committed", "read_uncommitted"),
    ),
    Definition(
        name="share.renew.acknowledge.enable",
        type=ConfigType.BOOLEAN,
        default="true",
        broker_config="share.renew.acknowledge.enable",
    ),
)
"""What only a group has."""
SETTINGS: Mapping[str, Setting] = {
    **{each.of_brokers: setting_of(each, ShareGroupLimits) for each in NUMBERS},
    "group.share.max.share.sessions": whole(ShareGroupLimits, "max_share_sessions", 1),
    "group.share.max.size": whole(ShareGroupLimits, "max_size", 1),
}
"""The brokers' settings by Kafka's names."""
