"""A share group (KIP-932) as a state machine: members, epochs and assignments.

Mirrors Kafka 4.3's ``shareGroup…`` methods of ``GroupMetadataManager``. As in a consumer group, a heartbeat applies its
member's changes, computes a new assignment if the group epoch requires one, and returns the member's part. A partition
may have several readers, so no member has to revoke anything first, and reaches its target at once.

It differs from Kafka in one way. A new partition is initialized at its leader at once. Kafka does that in the
background; until then its members are assigned nothing and must send another heartbeat. The epochs are those of Kafka
afterwards.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from loadwise.coordinator.groups.consumer_records import Tombstone
from loadwise.coordinator.groups.events import Committer, KindHeartbeat
from loadwise.coordinator.groups.heartbeat_group import HeartbeatGroup, Timer
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.topic_view import TopicView, by_name, fingerprint
from loadwise.coordinator.share.heartbeat import ShareHeartbeat, ShareHeartbeatReply
from loadwise.coordinator.share.limits import ShareGroupLimits
from loadwise.coordinator.share.records import (
    ShareGroupEpoch,
    ShareMemberAssignment,
    ShareMemberSubscription,
    ShareRecord,
    ShareTarget,
    ShareTopic,
)
from loadwise.coordinator.share.simple_assignor import assign
from loadwise.coordinator.share.state import ShareGroupState, ShareMember, SharesState
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode


class ShareGroup(HeartbeatGroup):
    """One share group. Only `handle` changes it."""

    type = "share"
    protocol_type: Final = "share"
    protocol_name: Final = "simple"

    def __init__(self, group_id: str, topics: TopicView, limits: ShareGroupLimits | None = None) -> None:
        super().__init__(group_id, topics)
        self.limits = limits or ShareGroupLimits()
        self.hard_state = SharesState(group_id)
        self._assigned_at_ms: int | None = None

    @classmethod
    def replay(
        cls,
        group_id: str,
        records: Iterable[ShareRecord],
        topics: TopicView,
        now_ms: int,
        limits: ShareGroupLimits | None = None,
    ) -> ShareGroup:
        """Rebuild a group from its records; all sessions start again."""
        group = cls(group_id, topics, limits)
        for record in records:
            group.hard_state.apply(record)
        for member_id in group.members:
            group._restart_session(member_id, now_ms)
        return group

    # ---- queries ----

    @property
    def members(self) -> Mapping[str, ShareMember]:
        """Return the members by id."""
        return self.hard_state.members

    @property
    def generation(self) -> int:
        """Return the group epoch."""
        return self.hard_state.epoch

    @property
    def state(self) -> ShareGroupState:
        """Return the group's state."""
        if self.is_dead:
            return ShareGroupState.DEAD
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def size_bytes(self) -> int:
        """Return the approximate bytes of its members' subscriptions."""
        return sum(len(name) for member in self.members.values() for name in member.metadata.topics)

    def records(self) -> Sequence[ShareRecord]:
        """Return the records that rebuild it, without its state in partitions."""
        return list(self.hard_state.records())

    def assignment(self, member_id: str) -> Mapping[str, Sequence[int]]:
        """Return a member's partitions, by topic name."""
        return by_name(self.members[member_id].current.partitions, self._topics)

    def subscribed_topics(self) -> Container[str]:
        """Return the subscribed topics."""
        return self.hard_state.topics()

    def expires_from_ms(self, committed: CommittedOffset) -> int | None:  # noqa: ARG002
        """Return None, because a share group commits no offsets."""
        return None

    def validate_offset_commit(self, who: Committer, partitions: Iterable[Partition]) -> ErrorCode:  # noqa: ARG002
        """Return an error, because a share group commits no offsets."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def validate_offset_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:  # noqa: ARG002
        """Return an error, because a share group commits no offsets."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def validate_offset_delete(self) -> ErrorCode:
        """Return an error, because a share group commits no offsets."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    # ---- events ----

    def _answer(self, event: KindHeartbeat, now_ms: int) -> Turns[ShareHeartbeatReply]:
        assert isinstance(event, ShareHeartbeat), "another kind's heartbeat is refused before it gets to a share group"
        return (yield from self._on_leaving(event) if event.epoch < 0 else self._on_heartbeat(event, now_ms))

    def _on_heartbeat(self, event: ShareHeartbeat, now_ms: int) -> Turns[ShareHeartbeatReply]:
        member = self.members.get(event.member_id)
        refusal = self._refusal(event, member)
        if refusal is not None:
            return refusal
        before = (
            ShareMemberSubscription(group_id=self.group_id, member_id=event.member_id)
            if member is None
            else member.metadata
        )
        after = replace(
            before,
            rack=before.rack if event.rack is None else event.rack,
            client_id=event.client_id,
            client_host=event.client_host,
            topics=before.topics if event.topics is None else frozenset(event.topics),
        )
        if after != before or member is None:
            self._write(after)
        what = "joined" if member is None else "changed its subscription"
        is_changed = after.topics != before.topics or member is None
        yield from self._refresh(f"{event.member_id} {what}" if is_changed else None)
        yield from self._update_target(now_ms)
        member = self.members[event.member_id]
        had = member.current
        self._move(member)
        self._restart_session(member.member_id, now_ms)
        is_full = event.epoch == 0 or event.topics is not None
        is_new = is_full or member.current.partitions != had.partitions
        return ShareHeartbeatReply(
            member_id=member.member_id,
            epoch=member.current.epoch,
            heartbeat_interval_ms=self.limits.heartbeat_interval_ms,
            assigned=member.current.partitions if is_new else None,
        )

    def _refusal(self, event: ShareHeartbeat, member: ShareMember | None) -> ShareHeartbeatReply | None:
        if member is None and len(self.members) >= self.limits.max_size:
            return _refused(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group already has {len(self.members)} members")
        if event.epoch == 0:
            return None
        if member is None:
            return self._unknown(event.member_id)
        # A member with its previous epoch has missed an answer.
        if event.epoch not in (member.current.epoch, member.current.previous_epoch):
            message = f"the member has epoch {event.epoch}, and the coordinator expects {member.current.epoch}"
            return _refused(ErrorCode.FENCED_MEMBER_EPOCH, f"{message}: it must abandon its partitions and rejoin")
        return None

    def _on_leaving(self, event: ShareHeartbeat) -> Turns[ShareHeartbeatReply]:
        if event.member_id not in self.members:
            return self._unknown(event.member_id)
        yield from self._remove(event.member_id, f"{event.member_id} left")
        return ShareHeartbeatReply(member_id=event.member_id, epoch=event.epoch)

    # ---- epochs and assignments ----

    def _refresh(self, reason: str | None) -> Turns[None]:
        if reason is None and self._topics_version == self._topics.version:
            return
        self._topics_version = self._topics.version
        found = yield from fingerprint(self.hard_state.topics(), self._topics)
        if reason is not None or found != self.hard_state.metadata_hash:
            self._reason = reason or "topics changed"
            self._bump(found)

    def _bump(self, metadata_hash: int) -> None:
        epoch = self.hard_state.epoch + 1
        self._write(ShareGroupEpoch(group_id=self.group_id, epoch=epoch, metadata_hash=metadata_hash))

    def _update_target(self, now_ms: int) -> Turns[None]:
        """Compute a new assignment if the group epoch requires it and the interval is over."""
        state, last_ms = self.hard_state, self._assigned_at_ms
        if state.target.epoch >= state.epoch:
            return
        if last_ms is not None and now_ms < last_ms + self.limits.assignment_interval_ms:
            return
        ids: dict[str, UUID] = {}
        counts: dict[UUID, int] = {}
        is_any_new = False
        for name in state.topics():
            topic = self._topics.get(name)
            if topic is not None:
                ids[name] = topic.id
                counts[topic.id] = count = len(topic.partitions)
                if state.begun.get(topic.id, 0) < count:
                    self._write(ShareTopic(group_id=self.group_id, topic_id=topic.id, partitions=count))
                    is_any_new = True
            yield
        if is_any_new:
            self._bump(state.metadata_hash)  # as Kafka does once they are initialized
        subscriptions: dict[str, frozenset[UUID]] = {}
        for member in self.members.values():
            theirs = set()
            for name in member.metadata.topics & ids.keys():
                theirs.add(ids[name])
                yield
            subscriptions[member.member_id] = frozenset(theirs)
        partitions = yield from assign(subscriptions, counts, state.target.partitions)
        self._write(ShareTarget(group_id=self.group_id, epoch=state.epoch, partitions=partitions))
        self._assigned_at_ms = now_ms

    def _move(self, member: ShareMember) -> None:
        target, current = self.hard_state.target, member.current
        if current.epoch == target.epoch:
            return
        self._write(
            ShareMemberAssignment(
                group_id=self.group_id,
                member_id=member.member_id,
                epoch=target.epoch,
                previous_epoch=current.epoch,
                partitions=target.partitions.get(member.member_id, {}),
            )
        )

    def _forget(self, member_id: str) -> None:
        for kind in ("share-member", "share-current"):
            self._write(Tombstone(group_id=self.group_id, key=(kind, member_id)))

    def _restart_session(self, member_id: str, now_ms: int) -> None:
        self._timers.set((Timer.SESSION, member_id), now_ms + self.limits.session_timeout_ms)

    def _write(self, record: ShareRecord) -> None:
        self.hard_state.apply(record)
        self._append(record)

    def _unknown(self, member_id: str) -> ShareHeartbeatReply:
        return _refused(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id!r} is not a member of group {self.group_id!r}")


def _refused(error: ErrorCode, message: str) -> ShareHeartbeatReply:
    return ShareHeartbeatReply(error=error, message=message)
