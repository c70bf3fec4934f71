"""What holds for all groups of the consumer protocol (KIP-848), under Kafka's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from loadwise.coordinator.errors import BadAssignorError
from loadwise.coordinator.groups.assignment_interval import assignment_interval_ms
from loadwise.coordinator.groups.consumer.assignors import SERVER_ASSIGNORS

if TYPE_CHECKING:  # numpy, for those who need it
    from loadwise.assignor.live.settings import LiveSettings


class MigrationPolicy(Enum):
    """Which groups with members may change their protocol; those without may always."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    """From the classic to the consumer protocol only."""
    DOWNGRADE = "downgrade"
    """Back to the classic protocol only."""
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        """Whether a consumer of KIP-848 may join a classic group."""
        return self in {MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE}

    @property
    def downgrades(self) -> bool:
        """Whether a group turns classic when its last consumer of KIP-848 leaves."""
        return self in {MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupLimits:
    """What holds for all groups of KIP-848.

    The names in brackets are Kafka's, and so are the values where no other is named.

    Raises `BadAssignorError` for an assignor that is not there.
    """

    heartbeat_interval_ms: int = 500
    """How often members send heartbeats (group.consumer.heartbeat.interval.ms; Kafka: 5000)."""
    session_timeout_ms: int = 45_000
    """How long a member may be silent (group.consumer.session.timeout.ms)."""
    max_size: int = 2**31 - 1
    """Most members of a group (group.consumer.max.size)."""
    assignment_interval_ms: int = 0
    """Shortest time between two targets of a group (group.consumer.assignment.interval.ms; Kafka: 1000).

    With 0, a group of up to 100 members has new targets at once. What targets cost grows with members and partitions,
    so a larger group waits a millisecond for every four members and every hundred partitions, and at most Kafka's
    1000 ms: many who join together share targets.
    """
    assignors: Sequence[str] = tuple(SERVER_ASSIGNORS)
    """Names of the assignors that members may ask for; the first is for groups that ask for none
    (group.consumer.assignors; Kafka: uniform, range)."""
    regex_refresh_interval_ms: int = 600_000
    """How long it takes at most until a regular expression stands for the topics that its members' clients may know of
    by then, where no topic has changed (group.consumer.regex.refresh.interval.ms)."""
    load_interval_ms: int = 2000
    """How often the load of its partitions is looked at, if its assignor goes by load. Ours, like the next one.

    A leader of a classic group looks every five seconds, for it asks brokers. Here they are the coordinator's own logs.
    """
    live: LiveSettings | bool = True
    """When a group whose assignor goes by load gets new targets because of it: as in the members of classic groups.
    False: only when members or topics come and go."""
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    """Whether groups with members change their protocol (group.consumer.migration.policy)."""

    def assignment_interval_of(self, members: int, partitions: int) -> int:
        """The shortest time between two targets of a group with so many members and partitions, in ms."""
        return assignment_interval_ms(self.assignment_interval_ms, members, partitions)

    def __post_init__(self) -> None:
        unknown = [name for name in self.assignors if name not in SERVER_ASSIGNORS]
        if unknown or not self.assignors:
            asked = ", ".join(map(repr, unknown)) or "none"
            raise BadAssignorError(f"assignors are {asked}; groups can be offered {', '.join(SERVER_ASSIGNORS)}")
