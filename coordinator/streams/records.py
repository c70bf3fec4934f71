"""The records of a streams group (KIP-1071): Kafka's ``StreamsGroup…`` records.

As in consumer groups, they are the whole persistent state, and the newest record of a key counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from loadwise.coordinator.groups.consumer_records import Tombstone
from loadwise.coordinator.groups.records import KindRecord
from loadwise.coordinator.streams.topology import NO_TASKS, Endpoint, Task, Tasks, Topology

FIRST_EPOCH = 1
"""The epoch of a group that never had members, and of its first, empty assignment."""

NOT_VALIDATED = -1
"""The validated topology epoch while topics do not match."""


class StreamsMemberState(Enum):
    """The progress of a member to its target, with Kafka's numbers."""

    STABLE = 1
    """It has its assignment of its epoch."""
    UNREVOKED_TASKS = 2
    """It must revoke tasks before it advances to the next epoch."""
    UNRELEASED_TASKS = 3
    """It waits for tasks that other members must revoke."""


class _StreamsRecord(KindRecord):
    __slots__ = ()

    kind = "streams"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupEpoch(_StreamsRecord):
    """The group's epoch, stored at each increment (``StreamsGroupMetadata``)."""

    keyed = ("streams-epoch",)

    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    """Hash of the topology's topics, their ids and partition counts."""
    validated_topology_epoch: int = 0
    """The epoch of the topology whose topics match, or `NOT_VALIDATED`."""
    num_standby_replicas: int | None = None
    """The setting for assignments since this epoch; None before the group's first epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsTopology(_StreamsRecord):
    """The first member's topology (``StreamsGroupTopology``)."""

    keyed = ("streams-topology",)

    topology: Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMemberMetadata(_StreamsRecord):
    """A member's client and process (``StreamsGroupMemberMetadata``)."""

    keyed = ("streams-member", "member_id")

    member_id: str
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    """The epoch of the member's topology."""
    process_id: str = ""
    """Members of one process share its state, so a task and its standby are in different ones."""
    endpoint: Endpoint | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    """The operator's description of its location. Apache Kafka 4.3 only stores it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsTarget(_StreamsRecord):
    """All members' targets and their group epoch (``StreamsGroupTargetAssignment…``)."""

    keyed = ("streams-target",)

    epoch: int = FIRST_EPOCH
    tasks: Mapping[str, Tasks] = field(default_factory=dict)
    """By member id."""
    at_ms: int | None = None
    """When it was computed, by the coordinator's clock; None for the first, empty one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMemberAssignment(_StreamsRecord):
    """A member's current assignment (``StreamsGroupCurrentMemberAssignment``)."""

    keyed = ("streams-current", "member_id")

    member_id: str
    epoch: int = 0
    previous_epoch: int = 0
    state: StreamsMemberState = StreamsMemberState.STABLE
    assigned: Tasks = NO_TASKS
    pending_revocation: Tasks = NO_TASKS
    """Tasks that it must revoke, and may still be processing."""
    epochs: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """The member epoch of each active task, also pending ones, by subtopology and partition."""

    def given(self) -> tuple[Tasks, dict[Task, int | None]]:
        """Return its tasks, and the member epochs at which it got the active ones."""
        return self.assigned, {task: self.assignment_epoch(task) for task in self.assigned.active}

    def assignment_epoch(self, task: Task) -> int | None:
        """Return the member epoch at which it got an active task; None if it does not have it."""
        return self.epochs.get(task.subtopology, {}).get(task.partition)


StreamsGroupRecord: TypeAlias = (
    StreamsGroupEpoch | StreamsTopology | StreamsMemberMetadata | StreamsTarget | StreamsMemberAssignment
)
"""The records that rebuild a streams group."""

StreamsRecord: TypeAlias = StreamsGroupRecord | Tombstone
