"""The state of a streams group, which only records change."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import assert_never

from loadwise.coordinator.groups.consumer_records import Tombstone
from loadwise.coordinator.groups.heartbeat_member import HeartbeatMember
from loadwise.coordinator.streams.records import (
    StreamsGroupEpoch,
    StreamsGroupRecord,
    StreamsMemberAssignment,
    StreamsMemberMetadata,
    StreamsMemberState,
    StreamsRecord,
    StreamsTarget,
    StreamsTopology,
)
from loadwise.coordinator.streams.topology import Task, Tasks, Topology


class StreamsGroupState(Enum):
    """The state of a streams group, by its name in StreamsGroupDescribe and ListGroups."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    """Topics are missing, or have the wrong number of partitions."""
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class StreamsMember(HeartbeatMember[StreamsMemberMetadata, StreamsMemberAssignment]):
    """One member of a streams group."""

    __slots__ = ()

    def held(self) -> Tasks:
        """Return the tasks that it has or must still revoke."""
        return self.current.assigned | self.current.pending_revocation


class Holders:
    """The members that hold each task, by role, including tasks that they must still revoke."""

    def __init__(self) -> None:
        self._members: tuple[dict[Task, set[str]], ...] = ({}, {}, {})

    def of(self, task: Task) -> tuple[set[str], ...]:
        """Return the ids of members with the task as active, standby and warm-up."""
        return tuple(of_role.get(task, set()) for of_role in self._members)

    def replace(self, member_id: str, before: Tasks, after: Tasks) -> None:
        """Replace a member's tasks."""
        if before is after:
            return
        for of_role, gone, come in zip(self._members, before - after, after - before, strict=True):
            for task in gone:
                of_role[task].discard(member_id)
                if not of_role[task]:
                    del of_role[task]
            for task in come:
                of_role.setdefault(task, set()).add(member_id)


class StreamsState:
    """The persistent state of a streams group; only `apply` changes it."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group = StreamsGroupEpoch(group_id=group_id)
        self.topology: Topology | None = None
        """None: the group never had members."""
        self.target = StreamsTarget(group_id=group_id)
        self.members: dict[str, StreamsMember] = {}
        self.holders = Holders()
        self._behind: set[str] = set()
        """Ids of members that have not reached their targets."""

    @property
    def epoch(self) -> int:
        """Return the group epoch, which grows when members, topics or configs change."""
        return self.group.epoch

    @property
    def name(self) -> StreamsGroupState:
        """Return the group's state. Mirrors ``StreamsGroup.maybeUpdateGroupState``."""
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.group.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.target.epoch:
            return StreamsGroupState.ASSIGNING
        return StreamsGroupState.RECONCILING if self._behind else StreamsGroupState.STABLE

    def records(self) -> Iterator[StreamsGroupRecord]:
        """Return the records that rebuild this state."""
        if self.topology is not None:
            yield StreamsTopology(group_id=self.group_id, topology=self.topology)
        yield from (member.metadata for member in self.members.values())
        yield self.group
        yield self.target
        yield from (member.current for member in self.members.values())

    def apply(self, record: StreamsRecord) -> None:
        """Apply a new or replayed record; the order of keys does not matter."""
        match record:
            case StreamsGroupEpoch():
                self.group = record
            case StreamsTopology():
                self.topology = record.topology
            case StreamsMemberMetadata():
                self._member(record.member_id).metadata = record
            case StreamsMemberAssignment():
                member = self._member(record.member_id)
                before = member.held()
                member.current = record
                self.holders.replace(record.member_id, before, member.held())
                self._look_at(member)
            case StreamsTarget():
                self.target = record
                for member in self.members.values():
                    self._look_at(member)
            case Tombstone(key=("streams-member" | "streams-current", str(member_id))):
                gone = self.members.pop(member_id, None)
                if gone is not None:
                    self.holders.replace(member_id, gone.held(), Tasks())
                    self._behind.discard(member_id)
            case Tombstone():
                raise AssertionError(f"a streams group that exists deletes no record under {record.key}")
            case _:
                assert_never(record)

    def _look_at(self, member: StreamsMember) -> None:
        current = member.current
        if current.state is StreamsMemberState.STABLE and current.epoch == self.target.epoch:
            self._behind.discard(member.member_id)
        else:
            self._behind.add(member.member_id)

    def _member(self, member_id: str) -> StreamsMember:
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = StreamsMember(
                StreamsMemberMetadata(group_id=self.group_id, member_id=member_id),
                StreamsMemberAssignment(group_id=self.group_id, member_id=member_id),
            )
            self._look_at(member)
        return member
