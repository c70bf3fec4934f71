"""All partitions of share groups, and members' sessions. Mirrors ``SharePartitionManager``.

The first fetch from a partition, or from its new leader, loads its state from the groups' journal. Each change is
written there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.cluster.topics import Topics
from loadwise.coordinator.groups.consumer_records import Tombstone
from loadwise.coordinator.groups.deadlines import Deadlines
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.coordinator.share.acknowledgements import Acknowledgement, AcknowledgeRefusal
from loadwise.coordinator.share.limits import ShareGroupLimits
from loadwise.coordinator.share.partition import SharePartition
from loadwise.coordinator.share.records import NO_START_OFFSET, ShareState, share_state_key, share_topic_key
from loadwise.coordinator.share.sessions import SessionKey, ShareSessions
from loadwise.coordinator.share.starts import start_offset
from loadwise.protocol.error_codes import ErrorCode

if TYPE_CHECKING:  # every start of the coordinator would import it
    from loadwise.coordinator.share.group import ShareGroup

_MOST_UNKEPT = 1000
"""Maximum number of ids without a group whose partitions are kept, because clients may invent ids."""


class ShareKey(NamedTuple):
    """A partition in one share group."""

    group_id: str
    topic_id: UUID
    partition: int


class _Led(NamedTuple):
    share: SharePartition
    log: PartitionLog
    leader_epoch: int


class Shares:
    """The state of share groups on the partitions' leaders."""

    def __init__(self, groups: Groups, topics: Topics, limits: Callable[[str], ShareGroupLimits]) -> None:
        self.sessions = ShareSessions()
        self._groups = groups
        self._limits = limits
        self._topics = topics
        self._partitions: dict[str, dict[ShareKey, _Led]] = defaultdict(dict)  # of each group
        self._unkept: dict[str, None] = {}  # ids with partitions but without a group, oldest first
        self._locks: Deadlines[ShareKey] = Deadlines()
        self._woken: list[ShareKey] = []

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when the first lock expires; None without one."""
        return self._locks.next_ms

    def group(self, group_id: str) -> ShareGroup | None:
        """Return the share group of this id; None if it does not exist or is of another kind."""
        from loadwise.coordinator.share.group import ShareGroup  # noqa: PLC0415

        group = self._groups.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def make_group(self, group_id: str, now_ms: int) -> ShareGroup:
        """Create a group without members; the id must be unused."""
        from loadwise.coordinator.share.group import ShareGroup  # noqa: PLC0415

        group = ShareGroup.replay(group_id, (), self._topics, now_ms, self._limits(group_id))
        self._groups.add(group)
        return group

    def state(self, group_id: str, topic_id: UUID, partition: int) -> ShareState | None:
        """Return a group's state in a partition; None before its first acknowledgement."""
        record = self._groups.journal.get(group_id, share_state_key(topic_id, partition))
        return record if isinstance(record, ShareState) else None

    def known(self, key: ShareKey) -> SharePartition | None:
        """Return a loaded partition; None if it was not fetched from its leader, or was deleted."""
        led = self._partitions.get(key.group_id, {}).get(key)
        if led is None:
            return None
        topic = self._topics.get_by_id(key.topic_id)
        if topic is None or led.log.leader_epoch != led.leader_epoch:
            self.forget([key])
            return None
        led.share.limits = self._limits(key.group_id)
        return led.share

    def partition(self, key: ShareKey, log: PartitionLog, now_ms: int) -> SharePartition:
        """Return a partition to fetch from, moved past records that the log has lost."""
        share = self.known(key)
        if share is None:
            limits = self._limits(key.group_id)
            state = self.state(*key)
            start = NO_START_OFFSET if state is None else state.start_offset
            if start == NO_START_OFFSET:
                start = start_offset(limits.auto_offset_reset, log, now_ms)
            share = SharePartition(start, limits, () if state is None else state.batches)
            share.advance()
            self._make_room_for(key.group_id)
            self._partitions[key.group_id][key] = _Led(share, log, log.leader_epoch)
        share.delete_before(log.start_offset)
        return share

    def acknowledge(
        self, key: ShareKey, member_id: str, told: Sequence[Acknowledgement], now_ms: int
    ) -> AcknowledgeRefusal | None:
        """Apply a member's acknowledgements in a partition; return why they fail."""
        share = self.known(key)
        if share is None:
            return AcknowledgeRefusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no member has fetched from this partition")
        before = share.state
        refusal = share.acknowledge(member_id, told, now_ms)
        if share.state != before:
            self._changed(key, share)
        self._locks.set(key, share.next_deadline_ms)
        return refusal

    def acquired(self, key: ShareKey, session: SessionKey) -> None:
        """Note that records were acquired in a session, so that their locks expire or are released at its end."""
        self.sessions.hold(session, (key.topic_id, key.partition))
        share = self._partitions[key.group_id][key].share
        self._locks.set(key, share.next_deadline_ms)

    def expire(self, now_ms: int) -> None:
        """Release records whose locks have expired."""
        for key in self._locks.due(now_ms):
            share = self.known(key)
            if share is None:
                continue
            if share.expire(now_ms):
                self._changed(key, share)
            else:
                self._locks.set(key, share.next_deadline_ms)

    def end_session(self, session: SessionKey) -> None:
        """End a member's session with a broker, and release its records there."""
        for topic_id, number in self.sessions.end(session):
            key = ShareKey(session.group_id, topic_id, number)
            share = self.known(key)
            if share is not None and share.release(session.member_id):
                self._changed(key, share)

    def disconnected(self, connection_id: int) -> None:
        """End the sessions of a closed connection."""
        for session in self.sessions.of_connection(connection_id):
            self.end_session(session)

    def take_woken(self) -> list[ShareKey]:
        """Return the partitions with newly available records since the last call."""
        woken, self._woken = self._woken, []
        return woken

    # ---- administrators ----

    def set_start(self, key: ShareKey, offset: int) -> None:
        """Move a group's start in a partition to this offset, whatever the state of its records."""
        before = self.state(*key)
        state_epoch = 1 if before is None else before.state_epoch + 1
        self.forget([key])
        self._keep(
            ShareState(
                group_id=key.group_id,
                topic_id=key.topic_id,
                partition=key.partition,
                state_epoch=state_epoch,
                start_offset=offset,
            )
        )

    def delete(self, group_id: str, topic_id: UUID) -> bool:
        """Delete a group's state of a topic; return whether it had any. O(partitions of it)."""
        group = self.group(group_id)
        if group is None or topic_id not in group.hard_state.known_topics:
            return False
        self.forget([ShareKey(group_id, topic_id, number) for number in group.hard_state.known(topic_id)])
        keys = [share_state_key(topic_id, number) for number in group.hard_state.told(topic_id)]
        if topic_id in group.hard_state.begun:
            keys.append(share_topic_key(topic_id))
        for key in keys:
            self._keep(Tombstone(group_id=group_id, key=key))
        return True

    def delete_topics(self, topic_ids: Set[UUID]) -> None:
        """Delete the state of deleted topics in all groups. O(groups + partitions in flight), however many topics."""
        for group_id in self._groups.all():
            group = self.group(group_id)
            for topic_id in () if group is None else topic_ids & group.hard_state.known_topics:
                self.delete(group_id, topic_id)
        keys = [key for partitions in self._partitions.values() for key in partitions if key.topic_id in topic_ids]
        self.forget(keys)

    def forget_group(self, group_id: str) -> None:
        """Delete the records of a group that was deleted or never existed."""
        self._unkept.pop(group_id, None)
        self.forget(list(self._partitions.get(group_id, ())))

    def _make_room_for(self, group_id: str) -> None:
        """Drop the in-flight records of the oldest ids without a group."""
        if self.group(group_id) is None:
            self._unkept[group_id] = None
        while len(self._unkept) > _MOST_UNKEPT:
            oldest = next(iter(self._unkept))
            del self._unkept[oldest]
            if self.group(oldest) is None:
                self.forget_group(oldest)

    def forget(self, keys: Iterable[ShareKey]) -> None:
        """Drop the in-flight records of partitions; the next fetch loads them from the journal."""
        for key in keys:
            partitions = self._partitions.get(key.group_id, {})
            partitions.pop(key, None)
            if not partitions:
                self._partitions.pop(key.group_id, None)
            self._locks.set(key, None)
            self._woken.append(key)

    def _keep(self, record: ShareState | Tombstone) -> None:
        """Store or delete a group's state in a partition."""
        self._groups.append(record)
        group = self.group(record.group_id)
        if group is not None:
            group.hard_state.apply(record)

    def _changed(self, key: ShareKey, share: SharePartition) -> None:
        """Store a partition's state, and wake fetches that wait for its records."""
        before = self.state(*key)
        if self.group(key.group_id) is not None:
            self._keep(
                ShareState(
                    group_id=key.group_id,
                    topic_id=key.topic_id,
                    partition=key.partition,
                    state_epoch=0 if before is None else before.state_epoch,
                    start_offset=share.start_offset,
                    batches=tuple(share.state),
                )
            )
        share.advance()
        self._locks.set(key, share.next_deadline_ms)
        self._woken.append(key)
