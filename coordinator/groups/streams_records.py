"""What a coordinator remembers of a streams group (KIP-1071): Kafka's ``StreamsGroup…`` records.

As with consumer groups, a group's hard state is these records and nothing else, and the newest under a key counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from loadwise.coordinator.groups.streams_topology import NO_TASKS, Endpoint, Task, Tasks, Topology

_Key: TypeAlias = tuple[str | int, ...]

FIRST_EPOCH = 1
"""The epoch of a group that nobody was ever in, and of its first, empty assignment."""

NOT_VALIDATED = -1
"""The epoch of the topology whose topics were found to be as they have to be, while they are not."""


class StreamsMemberState(Enum):
    """Where a member is on its way to its target, with Kafka's numbers."""

    STABLE = 1
    """It has what it should have at its epoch."""
    UNREVOKED_TASKS = 2
    """It has to give tasks up before it gets to the next epoch."""
    UNRELEASED_TASKS = 3
    """It waits for tasks that others have to give up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupEpoch:
    """The group's epoch, whenever it is bumped (``StreamsGroupMetadata``)."""

    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    """Fingerprint of the topology's topics, with their ids and numbers of partitions."""
    validated_topology_epoch: int = 0
    """The epoch of the topology whose topics are there, with the right numbers of partitions; or `NOT_VALIDATED`."""
    num_standby_replicas: int | None = None
    """What assignments go by since this epoch; None: the group has had no epoch yet."""

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("streams-epoch",)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsTopology:
    """The topology that the first member brought (``StreamsGroupTopology``)."""

    group_id: str
    topology: Topology

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("streams-topology",)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMemberMetadata:
    """Who a member is (``StreamsGroupMemberMetadata``)."""

    group_id: str
    member_id: str
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    """The epoch of the topology that the member runs."""
    process_id: str = ""
    """Members of one process share its state: a task and its standby are never both in one."""
    endpoint: Endpoint | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    """Where it runs, as its operator describes it. Apache Kafka 4.3 only keeps them."""

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("streams-member", self.member_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsTarget:
    """What every member should have, and for which group epoch that was made (``StreamsGroupTargetAssignment…``)."""

    group_id: str
    epoch: int = FIRST_EPOCH
    tasks: Mapping[str, Tasks] = field(default_factory=dict)
    """By member id."""
    at_ms: int | None = None
    """When it was made, by the coordinator's clock; None for the first, empty one."""

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("streams-target",)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMemberAssignment:
    """What a member has now (``StreamsGroupCurrentMemberAssignment``)."""

    group_id: str
    member_id: str
    epoch: int = 0
    previous_epoch: int = 0
    state: StreamsMemberState = StreamsMemberState.STABLE
    assigned: Tasks = NO_TASKS
    pending_revocation: Tasks = NO_TASKS
    """What it has to give up, and may still be at work on."""
    epochs: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """The member epoch at which it got each active task, given up or not, by subtopology and partition."""

    @property
    def key(self) -> _Key:
        """Its place in the journal."""
        return ("streams-current", self.member_id)

    def given(self) -> tuple[Tasks, dict[Task, int | None]]:
        """The tasks that it has, and since which of its epochs it has the active ones."""
        return self.assigned, {task: self.assignment_epoch(task) for task in self.assigned.active}

    def assignment_epoch(self, task: Task) -> int | None:
        """Since which of its epochs the member has an active task; None if it has it not."""
        return self.epochs.get(task.subtopology, {}).get(task.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsTombstone:
    """What stands under a key counts no more."""

    group_id: str
    key: _Key


StreamsGroupRecord: TypeAlias = (
    StreamsGroupEpoch | StreamsTopology | StreamsMemberMetadata | StreamsTarget | StreamsMemberAssignment
)
"""What rebuilds a streams group."""

StreamsRecord: TypeAlias = StreamsGroupRecord | StreamsTombstone
