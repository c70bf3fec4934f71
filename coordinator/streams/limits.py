"""Limits of streams groups (KIP-1071), under Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from loadwise.coordinator.configs.assignment_interval import assignment_interval_ms
from loadwise.coordinator.configs.group_numbers import GroupNumber, numbers_of_group, times_of
from loadwise.coordinator.configs.setting import Setting, setting_of, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupLimits:
    """Limits of a streams group. Kafka's names are in brackets; all values but three are Kafka's."""

    assignment_interval_ms: int = 0
    """Minimum time between two assignments (group.streams.assignment.interval.ms; Kafka: 1000).

    With 0, a group of up to 100 members is assigned at once. A larger one waits one millisecond for every four members
    and every hundred tasks, up to Kafka's 1000 ms.
    """
    heartbeat_interval_ms: int = 500
    """How often members send heartbeats (group.streams.heartbeat.interval.ms; Kafka: 5000)."""
    initial_rebalance_delay_ms: int = 0
    """How long an empty group waits for more members before it assigns tasks
    (group.streams.initial.rebalance.delay.ms; Kafka: 3000)."""
    max_size: int = 2**31 - 1
    """Maximum members of a group (group.streams.max.size)."""
    num_standby_replicas: int = 0
    """Number of standbys of a task with state (group.streams.num.standby.replicas)."""
    session_timeout_ms: int = 45_000
    """Session timeout of members (group.streams.session.timeout.ms)."""

    def of_group(self, configs: Mapping[str, str]) -> StreamsGroupLimits:
        """Return the limits of a group with these configs."""
        numbers = numbers_of_group(NUMBERS, configs)
        return replace(self, **numbers) if numbers else self

    def assignment_interval_of(self, members: int, tasks: int) -> int:
        """Return the minimum time between two assignments of a group, in ms."""
        return assignment_interval_ms(self.assignment_interval_ms, members, tasks)


_MAX_STANDBY_REPLICAS = 2
"""Kafka's group.streams.max.standby.replicas, which is not to be set here."""
NUMBERS = (
    *times_of("streams"),
    GroupNumber("streams.initial.rebalance.delay.ms", "initial_rebalance_delay_ms", 3000, 0),
    GroupNumber("streams.num.standby.replicas", "num_standby_replicas", 0, 0, _MAX_STANDBY_REPLICAS),
)
"""What a streams group can have of its own, in place of the broker's."""
SETTINGS: Mapping[str, Setting] = {
    **{each.of_brokers: setting_of(each, StreamsGroupLimits) for each in NUMBERS},
    "group.streams.max.size": whole(StreamsGroupLimits, "max_size", 1),
}
"""The brokers' settings by Kafka's names."""
