"""The read-only part of a classic group: its state and its answers to queries.

Mirrors Kafka 4.3's ``ClassicGroup`` where ``Group`` requires it, with ``validateMember``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, Self

from loadwise.coordinator.groups.classic.member import ClassicMember
from loadwise.coordinator.groups.classic.offered_protocols import OfferedProtocols
from loadwise.coordinator.groups.classic.states import Completing, Dead, Empty, GroupState, Phase, Preparing, Stable
from loadwise.coordinator.groups.deadlines import Deadlines
from loadwise.coordinator.groups.events import NO_MEMBER_ID, Committer, Join, Token
from loadwise.coordinator.groups.group import EVERY_TOPIC
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.records import GroupRecord
from loadwise.protocol.consumer import PROTOCOL_TYPE, Assignment, Subscription
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.errors import MalformedBytesError


class DescribedGroup:
    """The members of a classic group, its generation and its state."""

    type: Final = "classic"
    """Its type in ListGroups."""

    def __init__(self, group_id: str, limits: GroupLimits | None = None) -> None:
        self.group_id = group_id
        self.limits = limits or GroupLimits()
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.sessions: Deadlines[str] = Deadlines()
        """When members' sessions expire; a member that waits for an answer may have none."""
        self._phase: Phase = Empty()
        self._static_ids: dict[str, str] = {}
        self._offered = OfferedProtocols()
        self._pending_joins: Deadlines[str] = Deadlines()  # assigned ids (KIP-394), and when they expire
        self._now_ms = 0

    @classmethod
    def replay(cls, record: GroupRecord, now_ms: int, limits: GroupLimits | None = None) -> Self:
        """Rebuild a group from its newest record; the members' sessions start again."""
        group = cls(record.group_id, limits)
        group.generation = record.generation
        group.protocol_type = record.protocol_type
        group.protocol_name = record.protocol_name
        group.leader = record.leader
        for kept in record.members:
            member = ClassicMember.replayed(kept, record.protocol_name or "")
            group.sessions.set(member.member_id, now_ms + member.session_timeout_ms)
            group.members[member.member_id] = member
            group._offered.add(member.protocols)
            if member.instance_id is not None:
                group._static_ids[member.instance_id] = member.member_id
        group._phase = Stable() if group.members else Empty(record.since_ms)
        return group

    @classmethod
    def of_members(
        cls, group_id: str, generation: int, members: Sequence[ClassicMember], now_ms: int, limits: GroupLimits
    ) -> Self:
        """Return a stable group of consumers with assignments, converted from another protocol."""
        group = cls(group_id, limits)
        group.generation = generation
        group.protocol_type = PROTOCOL_TYPE
        group.members = {member.member_id: member for member in members}
        group._static_ids = {
            member.instance_id: member.member_id for member in members if member.instance_id is not None
        }
        for member in members:
            group._offered.add(member.protocols)
        group.leader = members[0].member_id
        group.protocol_name = group._elected_protocol()
        group._phase = Stable()
        group._now_ms = now_ms
        for member in members:
            group._restart_session(member)
        return group

    # ---- queries ----

    @property
    def state(self) -> GroupState:
        """Return the state by Kafka's name."""
        return self._phase.name

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when the next `Tick` is due; None if nothing expires."""
        phase = self._phase
        earliest_ms = None if isinstance(phase, Empty | Dead) else phase.deadline_ms
        for deadline_ms in (self.sessions.next_ms, self._pending_joins.next_ms):
            if deadline_ms is not None and (earliest_ms is None or deadline_ms < earliest_ms):
                earliest_ms = deadline_ms
        return earliest_ms

    @property
    def num_members(self) -> int:
        """Return the number of members and of unused assigned ids (KIP-394)."""
        return len(self.members) + len(self._pending_joins)

    @property
    def size_bytes(self) -> int:
        """Return the bytes of its members' subscriptions and assignments."""
        return sum(member.size_bytes for member in self.members.values())

    @property
    def waiting(self) -> Mapping[str, Token]:
        """Return the pending join or sync of each waiting member."""
        match self._phase:
            case Preparing(joins=waiting) | Completing(syncs=waiting):
                return waiting
            case _:
                return {}

    def assignment(self, member_id: str) -> Mapping[str, Sequence[int]] | None:
        """Return a member's partitions by topic name; None for bytes of a custom assignor."""
        if self.protocol_type != PROTOCOL_TYPE:
            return None
        try:
            return Assignment.decode(self.members[member_id].assignment).partitions
        except MalformedBytesError:
            return None  # bytes of a custom assignor: they cannot be shown

    def subscribed_topics(self) -> Container[str]:
        """Return the topics that members read.

        A consumer whose subscription cannot be decoded counts as reading every topic.
        """
        if self.protocol_type != PROTOCOL_TYPE or not self.members:
            return ()
        if self.protocol_name is None:
            return EVERY_TOPIC  # they have joined, but have no protocol yet
        topics: set[str] = set()
        for member in self.members.values():
            try:
                topics.update(Subscription.decode(member.metadata(self.protocol_name)).topics)
            except (MalformedBytesError, KeyError):
                return EVERY_TOPIC
        return topics

    def records(self) -> Sequence[GroupRecord]:
        """Return the record that rebuilds it."""
        return [self.record()]

    def record(self) -> GroupRecord:
        """Return the group's record; valid while it is empty, completing or stable."""
        return GroupRecord(
            group_id=self.group_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader,
            members=tuple(member.record(self.protocol_name or "") for member in self.members.values()),
            since_ms=self._phase.since_ms if isinstance(self._phase, Empty) else None,
        )

    def expires_from_ms(self, committed: CommittedOffset) -> int | None:
        """Return when the retention of an offset starts; None if it does not expire.

        For consumers it starts when they left, or at the commit in a group that never had members. Offsets do not
        expire during a rebalance, nor in groups of other protocol types. Mirrors
        ``ClassicGroup.offsetExpirationCondition``.
        """
        if self.protocol_type is None:
            return committed.committed_ms
        match self._phase:
            case Empty(since_ms=since_ms):
                return committed.committed_ms if since_ms is None else since_ms
            case Stable() if self.protocol_type == PROTOCOL_TYPE:
                return committed.committed_ms
            case _:
                return None

    def validate_offset_commit(self, who: Committer, partitions: Iterable[Partition]) -> ErrorCode:  # noqa: ARG002
        """Return whether this client may commit now.

        In a transaction the member is optional, because older clients do not send it, and a rebalance is allowed.
        Mirrors ``ClassicGroup.validateOffsetCommit``.
        """
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if who.generation < 0 and self.state is GroupState.EMPTY:
            return ErrorCode.NONE  # an administrator, or a consumer that assigns itself
        if who.generation < 0 and who.member_id == NO_MEMBER_ID and who.instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID if who.producer_id is None else ErrorCode.NONE
        error = self._membership_error(who.member_id, who.instance_id)
        if error is ErrorCode.NONE and who.generation != self.generation:
            error = ErrorCode.ILLEGAL_GENERATION
        is_rebalancing = self.state is GroupState.COMPLETING_REBALANCE and who.producer_id is None
        return ErrorCode.REBALANCE_IN_PROGRESS if error is ErrorCode.NONE and is_rebalancing else error

    def validate_offset_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:  # noqa: ARG002
        """Allow every client to read the committed offsets of a classic group."""
        return ErrorCode.NONE

    def validate_offset_delete(self) -> ErrorCode:
        """Refuse to delete offsets of a group that has other members than consumers.

        The topics that these read are unknown.
        """
        if self.state is GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if self.members and self.protocol_type != PROTOCOL_TYPE:
            return ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.NONE

    # ---- checks for subclasses ----

    def _membership_error(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Mirrors ``ClassicGroup.validateMember``."""
        if instance_id is not None:
            current = self._static_ids.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def _accepts(self, member_id: str) -> bool:
        match self._phase:
            case Empty() | Dead():
                return True
            case Preparing(joins=joins):
                # Counting the waiting members excludes the last ones to rejoin if the limit was lowered.
                return member_id in joins or len(joins) < self.limits.max_size
            case _:
                return member_id in self.members or len(self.members) < self.limits.max_size

    def _supports(self, event: Join) -> bool:
        if self.state is GroupState.EMPTY:
            return bool(event.protocol_type and event.protocols)
        if event.protocol_type != self.protocol_type:
            return False
        if not self.members:
            return bool(event.protocols)
        return any(self._offered.is_common(name) for name, _ in event.protocols)

    def _elected_protocol(self) -> str:
        candidates = self._offered.common
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=votes.__getitem__)

    def _rebalance_timeout_ms(self) -> int:
        if not self.members:
            return 0
        # At least 1 ms, so that the deadline is in the future whatever a client requests.
        return max(1, *(member.rebalance_timeout_ms for member in self.members.values()))

    def _restart_session(self, member: ClassicMember) -> None:
        self.sessions.set(member.member_id, self._now_ms + member.session_timeout_ms)
