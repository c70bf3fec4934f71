"""Limits of all groups of the consumer protocol (KIP-848), under Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from loadwise.coordinator.configs.assignment_interval import assignment_interval_ms
from loadwise.coordinator.configs.group_numbers import numbers_of_group, times_of
from loadwise.coordinator.errors import BadAssignorError
from loadwise.coordinator.groups.consumer.assignors import SERVER_ASSIGNORS

if TYPE_CHECKING:  # imports numpy, which is optional
    from loadwise.assignor.live.settings import LiveSettings


NUMBERS = times_of("consumer")
"""What a group can have of its own, in place of the broker's."""


class MigrationPolicy(Enum):
    """Which groups with members may change their protocol; empty groups always may."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    """From the classic to the consumer protocol only."""
    DOWNGRADE = "downgrade"
    """Back to the classic protocol only."""
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        """Return whether a KIP-848 consumer may join a classic group."""
        return self in {MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE}

    @property
    def downgrades(self) -> bool:
        """Return whether a group becomes classic when its last KIP-848 consumer leaves."""
        return self in {MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupLimits:
    """Limits of KIP-848 groups.

    Kafka's names are in brackets; values are Kafka's unless another is named. Raises `BadAssignorError` for an unknown
    assignor.
    """

    heartbeat_interval_ms: int = 500
    """How often members send heartbeats (group.consumer.heartbeat.interval.ms; Kafka: 5000)."""
    session_timeout_ms: int = 45_000
    """Session timeout of members (group.consumer.session.timeout.ms)."""
    max_size: int = 2**31 - 1
    """Maximum members of a group (group.consumer.max.size)."""
    assignment_interval_ms: int = 0
    """Minimum time between two targets (group.consumer.assignment.interval.ms; Kafka: 1000).

    With 0, a group of up to 100 members gets new targets at once. Their cost grows with members and partitions, so a
    larger group waits one millisecond for every four members and every hundred partitions, up to Kafka's 1000 ms.
    Members who join together then share targets.
    """
    assignors: Sequence[str] = tuple(SERVER_ASSIGNORS)
    """Enabled assignors; the first is the default (group.consumer.assignors; Kafka: uniform, range)."""
    regex_refresh_interval_ms: int = 600_000
    """Maximum time until a regular expression is resolved again without a change of topics.

    By then the topics that clients may describe can differ (group.consumer.regex.refresh.interval.ms).
    """
    load_interval_ms: int = 2000
    """How often partitions' load is read, if the assignor uses it. Not a Kafka setting, like the next one.

    A leader of a classic group reads every five seconds, because it asks brokers. Here the logs are local.
    """
    live: LiveSettings | bool = True
    """When the load alone triggers new targets, if the assignor uses it; as in classic groups' members.

    False: only changes of members or topics do.
    """
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    """Whether groups with members may change their protocol (group.consumer.migration.policy)."""

    def of_group(self, configs: Mapping[str, str]) -> ConsumerGroupLimits:
        """Return the limits of a group with these configs."""
        numbers = numbers_of_group(NUMBERS, configs) if configs else {}
        return replace(self, **numbers) if numbers else self

    def assignment_interval_of(self, members: int, partitions: int) -> int:
        """Return the minimum time between two targets of a group, in ms."""
        return assignment_interval_ms(self.assignment_interval_ms, members, partitions)

    def __post_init__(self) -> None:
        unknown = [name for name in self.assignors if name not in SERVER_ASSIGNORS]
        if unknown or not self.assignors:
            asked = ", ".join(map(repr, unknown)) or "none"
            raise BadAssignorError(f"assignors is {asked}; the available assignors are {', '.join(SERVER_ASSIGNORS)}")
