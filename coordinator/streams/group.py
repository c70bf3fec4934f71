"""A streams group (KIP-1071) as a state machine: its topology, epochs and tasks.

Mirrors Kafka 4.3's ``streamsGroup…`` methods of ``GroupMetadataManager``. As in a consumer group, there are three
epochs. The group epoch grows when members, topics or configs change; the target has the group epoch that it was
computed for; a member has the target epoch that it has reached. Tasks are assigned only while all topics of the
topology exist (`…streams.configured_topology`). A member moves to its target step by step (`…streams.reconciliation`),
so that a task never has two active owners.

Some state is not in records and is lost when another broker takes the group over, as in Kafka: the configured topology,
the shutdown request and the endpoints' epoch. The state from a failed first heartbeat is dropped, too.

It differs from Kafka in one way. While source topics are missing, a member with an endpoint gets their names. Apache
Kafka 4.3.1 fails with UNKNOWN_SERVER_ERROR, because it looks for partitions of an unconfigured topology.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from loadwise.coordinator.errors import InvalidTopologyError
from loadwise.coordinator.groups.consumer_records import Tombstone
from loadwise.coordinator.groups.events import NO_MEMBER_ID, Committer, KindHeartbeat
from loadwise.coordinator.groups.heartbeat_group import HeartbeatGroup, Timer
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.topic_view import TopicView, fingerprint
from loadwise.coordinator.streams.configured_topology import ConfiguredTopology, configure
from loadwise.coordinator.streams.endpoints import endpoint_partitions
from loadwise.coordinator.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatReply
from loadwise.coordinator.streams.limits import StreamsGroupLimits
from loadwise.coordinator.streams.next_steps import new_target, next_assignment
from loadwise.coordinator.streams.records import (
    NOT_VALIDATED,
    StreamsMemberMetadata,
    StreamsMemberState,
    StreamsRecord,
    StreamsTopology,
)
from loadwise.coordinator.streams.state import StreamsGroupState, StreamsMember, StreamsState
from loadwise.coordinator.streams.topology import NO_TASKS, Status, StatusCode, Task, Tasks, Topology
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode


class StreamsGroup(HeartbeatGroup):
    """One streams group. Only `handle` changes it."""

    type = "streams"
    protocol_type: Final = "streams"
    protocol_name: Final = "sticky"

    def __init__(self, group_id: str, topics: TopicView, limits: StreamsGroupLimits | None = None) -> None:
        super().__init__(group_id, topics)
        self.limits = limits or StreamsGroupLimits()
        self.hard_state = StreamsState(group_id)
        self.configured: ConfiguredTopology | None = None
        """Its topology with the existing topics; None: not computed yet."""
        self._is_new = True
        """Whether it never had members."""
        self._shut_down_by: str | None = None
        """The member that requested a shutdown; None if none did."""
        self._endpoint_epoch = 0

    @classmethod
    def replay(
        cls,
        group_id: str,
        records: Iterable[StreamsRecord],
        topics: TopicView,
        now_ms: int,
        limits: StreamsGroupLimits | None = None,
    ) -> StreamsGroup:
        """Rebuild a group from its records; all timers start again."""
        group = cls(group_id, topics, limits)
        for record in records:
            group._is_new = False
            group.hard_state.apply(record)
        for member in group.members.values():
            group._restart_session(member.member_id, now_ms)
            group._restart_rebalance(member, now_ms)
        return group

    # ---- queries ----

    @property
    def members(self) -> Mapping[str, StreamsMember]:
        """Return the members by id."""
        return self.hard_state.members

    @property
    def generation(self) -> int:
        """Return the group epoch."""
        return self.hard_state.epoch

    @property
    def state(self) -> StreamsGroupState:
        """Return the group's state."""
        return StreamsGroupState.DEAD if self.is_dead else self.hard_state.name

    @property
    def size_bytes(self) -> int:
        """Return the approximate bytes of its members' data."""
        topology = self.hard_state.topology
        tags = (text for member in self.members.values() for tag in member.metadata.tags.items() for text in tag)
        return (0 if topology is None else topology.size_bytes()) + sum(map(len, tags))

    def records(self) -> Sequence[StreamsRecord]:
        """Return the records that rebuild it."""
        return list(self.hard_state.records())

    def assignment(self, member_id: str) -> Mapping[str, Sequence[int]]:
        """Return the partitions of a member's active tasks, by topic name."""
        topology = self.hard_state.topology
        inputs = {} if topology is None else {each.id: each.inputs() for each in topology.subtopologies}
        named: dict[str, set[int]] = {}
        for task in self.members[member_id].current.assigned.active:
            for name in inputs.get(task.subtopology, ()):
                topic = self._topics.get(name)
                if topic is not None and task.partition < len(topic.partitions):
                    named.setdefault(name, set()).add(task.partition)
        return {name: sorted(numbers) for name, numbers in named.items()}

    def subscribed_topics(self) -> Container[str]:
        """Return the application's source topics; none while it has no members."""
        topology = self.hard_state.topology
        return set() if topology is None or not self.members else topology.subtopology_of().keys()

    def expires_from_ms(self, committed: CommittedOffset) -> int:
        """Return the commit time, when an offset's retention starts."""
        return committed.committed_ms

    def validate_offset_commit(self, who: Committer, partitions: Iterable[Partition]) -> ErrorCode:
        """Return whether this client may commit for all these partitions.

        Mirrors ``StreamsGroup.validateOffsetCommit``. A member may commit with an older epoch for tasks that it had
        then and has not revoked, because it may not know its new epoch yet.
        """
        is_in_transaction = who.producer_id is not None
        if who.generation < 0 and not self.members:
            return ErrorCode.NONE  # an administrator
        if is_in_transaction and who.generation < 0 and who.member_id == NO_MEMBER_ID and who.instance_id is None:
            return ErrorCode.NONE  # in a transaction the member is optional
        member = self.members.get(who.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not who.knows_epochs:
            return ErrorCode.UNSUPPORTED_VERSION
        epoch = member.current.epoch
        if who.generation == epoch or (who.generation < epoch and self._had_all(member, who.generation, partitions)):
            return ErrorCode.NONE
        return ErrorCode.ILLEGAL_GENERATION if is_in_transaction else ErrorCode.STALE_MEMBER_EPOCH

    def _had_all(self, member: StreamsMember, epoch: int, partitions: Iterable[Partition]) -> bool:
        topology = self.hard_state.topology
        reader = {} if topology is None else topology.subtopology_of()
        for topic, number in partitions:
            since = member.current.assignment_epoch(Task(reader.get(topic, ""), number))
            if topic not in reader or since is None or epoch < since:
                return False
        return True

    def validate_offset_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Return whether this client may fetch offsets. Mirrors ``StreamsGroup.validateOffsetFetch``."""
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == member.current.epoch else ErrorCode.STALE_MEMBER_EPOCH

    def validate_offset_delete(self) -> ErrorCode:
        """Allow administrators to delete offsets of topics that the application does not read."""
        return ErrorCode.GROUP_ID_NOT_FOUND if self.is_dead else ErrorCode.NONE

    # ---- heartbeats ----

    def _answer(self, event: KindHeartbeat, now_ms: int) -> Turns[StreamsHeartbeatReply]:
        assert isinstance(event, StreamsHeartbeat), "only streams heartbeats reach a streams group"
        if event.epoch < 0:
            return (yield from self._on_leaving(event))
        refusal = self._refusal(event)
        if refusal is not None:
            return refusal
        topology = self.hard_state.topology or event.topology
        assert topology is not None, "a joining member sends one"
        look = yield from self._looked_at(topology)
        if isinstance(look, StreamsHeartbeatReply):
            return look
        configured, metadata_hash = look
        problem = configured.problem_of(event.owned or NO_TASKS) if configured.is_ready else None
        if problem is not None:
            return _refused(ErrorCode.INVALID_REQUEST, problem)
        return self._on_heartbeat(event, topology, configured, metadata_hash, now_ms)

    def _refusal(self, event: StreamsHeartbeat) -> StreamsHeartbeatReply | None:
        """Return errors that do not depend on topics."""
        state, members = self.hard_state, self.members
        if event.epoch == 0 and len(members) >= self.limits.max_size:
            message = f"The streams group has reached its maximum capacity of {self.limits.max_size} members."
            return _refused(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
        if event.epoch != 0:
            member = members.get(event.member_id)
            if member is None:
                return self._unknown(event.member_id)
            current = member.current
            # A member with its previous epoch and no task outside its assignment has missed an answer.
            missed = (
                event.epoch == current.previous_epoch and event.owned is not None and event.owned <= current.assigned
            )
            if event.epoch > current.epoch or (event.epoch < current.epoch and not missed):
                what = "greater" if event.epoch > current.epoch else "smaller"
                message = (
                    f"The streams group member has a {what} member epoch ({event.epoch}) than the one known "
                    f"by the group coordinator ({current.epoch}). "
                    "The member must abandon all its partitions and rejoin."
                )
                return _refused(ErrorCode.FENCED_MEMBER_EPOCH, message)
        brought, known = event.topology, state.topology
        # Where Kafka makes maps of what a request names twice, it fails.
        fails = event.repeats_tag
        if brought is not None and not brought.has_ids():
            fails = True
        elif brought is not None and known is None:
            fails = fails or event.repeats_config or not brought.is_sound()
        elif (
            brought is not None
            and known is not None
            and brought.epoch >= known.epoch
            and (brought != known or event.repeats_config)
        ):
            return _refused(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        return _refused(ErrorCode.UNKNOWN_SERVER_ERROR, None) if fails else None

    def _looked_at(self, topology: Topology) -> Turns[tuple[ConfiguredTopology, int] | StreamsHeartbeatReply]:
        """Return the topology with the existing topics and their hash, or the error."""
        state, configured = self.hard_state, self.configured
        if configured is not None and self._topics_version == self._topics.version:
            return configured, state.group.metadata_hash
        metadata_hash = yield from fingerprint(topology.required_topics(), self._topics)
        if configured is None or metadata_hash != state.group.metadata_hash:
            try:
                configured = configure(topology, self._topics)
            except InvalidTopologyError as problem:
                return _refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, str(problem))
        return configured, metadata_hash

    def _on_heartbeat(
        self,
        event: StreamsHeartbeat,
        topology: Topology,
        configured: ConfiguredTopology,
        metadata_hash: int,
        now_ms: int,
    ) -> StreamsHeartbeatReply:
        was_empty = not self.members
        statuses = []
        reason = self._subscribe(event)
        metadata = self.members[event.member_id].metadata
        if self.hard_state.topology is None:
            self._write(StreamsTopology(group_id=self.group_id, topology=topology))
        elif metadata.topology_epoch < topology.epoch:
            detail = (
                f"The member's topology epoch {metadata.topology_epoch} is behind "
                f"the group's topology epoch {topology.epoch}."
            )
            statuses.append(Status(StatusCode.STALE_TOPOLOGY, detail))
        self._bump(reason, topology, configured, metadata_hash)
        if was_empty and self.limits.initial_rebalance_delay_ms and (Timer.INITIAL_DELAY, "") not in self._timers:
            self._timers.set((Timer.INITIAL_DELAY, ""), now_ms + self.limits.initial_rebalance_delay_ms)
        target, delay = self._target(event.member_id, configured, now_ms)
        if delay is not None:
            statuses.append(Status(StatusCode.ASSIGNMENT_DELAYED, delay))
        before = self.members[event.member_id].current
        self._reconcile(event, target, now_ms)
        self._restart_session(event.member_id, now_ms)
        if configured.problem is not None:
            statuses.append(configured.problem)
        shut_down_by = self._shut_down_by or (event.member_id if event.shuts_down else None)
        if shut_down_by is not None:
            detail = (
                f"Streams group member {shut_down_by} encountered a fatal error "
                "and requested a shutdown for the entire application."
            )
            statuses.append(Status(StatusCode.SHUTDOWN_APPLICATION, detail))
        current = self.members[event.member_id].current
        is_new = event.epoch == 0 or (current is not before and current.given() != before.given())
        endpoint_epoch = self._endpoint_epoch + (is_new and metadata.endpoint is not None)
        reply = StreamsHeartbeatReply(
            member_id=event.member_id,
            epoch=current.epoch,
            heartbeat_interval_ms=self.limits.heartbeat_interval_ms,
            statuses=statuses,
            assigned=current.assigned if is_new else None,
            endpoint_epoch=0 if self._is_new else endpoint_epoch,
            endpoints=None
            if endpoint_epoch == event.endpoint_epoch
            else endpoint_partitions(self.members.values(), configured, self._topics),
            missing_topics=configured.missing,
        )
        if self._is_new:
            self._is_new = False
        else:
            self.configured, self._topics_version = configured, self._topics.version
            self._shut_down_by, self._endpoint_epoch = shut_down_by, endpoint_epoch
        return reply

    def _on_leaving(self, event: StreamsHeartbeat) -> Turns[StreamsHeartbeatReply]:
        if event.shuts_down and self._shut_down_by is None:
            self._shut_down_by = event.member_id
        if event.member_id not in self.members:
            return self._unknown(event.member_id)
        yield from self._remove(event.member_id, f"{event.member_id} left")
        return StreamsHeartbeatReply(member_id=event.member_id, epoch=event.epoch)

    # ---- epochs and assignments ----

    def _subscribe(self, event: StreamsHeartbeat) -> str | None:
        """Apply a member's changes; return the reason for a new epoch, or None."""
        member = self.members.get(event.member_id)
        empty = StreamsMemberMetadata(group_id=self.group_id, member_id=event.member_id)
        before = empty if member is None else member.metadata
        timeout_ms = event.rebalance_timeout_ms
        after = replace(
            before,
            rack=before.rack if event.rack is None else event.rack,
            client_id=event.client_id,
            client_host=event.client_host,
            rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms is None else timeout_ms,
            topology_epoch=before.topology_epoch if event.topology is None else event.topology.epoch,
            process_id=before.process_id if event.process_id is None else event.process_id,
            endpoint=before.endpoint if event.endpoint is None else event.endpoint,
            tags=before.tags if event.tags is None else event.tags,
        )
        if member is not None and after == before:
            return None
        self._write(after)
        return f"{event.member_id} {'joined' if member is None else 'changed'}"

    def _bump(self, reason: str | None, topology: Topology, configured: ConfiguredTopology, metadata_hash: int) -> None:
        """Increment the group epoch if there is a reason, or if topics or configs have changed."""
        before = self.hard_state.group
        after = replace(
            before,
            metadata_hash=metadata_hash,
            validated_topology_epoch=topology.epoch if configured.is_ready else NOT_VALIDATED,
            num_standby_replicas=self.limits.num_standby_replicas,
        )
        if reason is not None or after != before:
            self._reason = reason or "its topics or configs changed"
            self._write(replace(after, epoch=before.epoch + 1))

    def _refresh(self, reason: str | None) -> Turns[None]:
        yield from ()
        if reason is not None:
            self._reason = reason
            self._write(replace(self.hard_state.group, epoch=self.hard_state.epoch + 1))

    def _target(self, member_id: str, configured: ConfiguredTopology, now_ms: int) -> tuple[Tasks, str | None]:
        """Return a member's target, and why a due assignment is delayed."""
        if (Timer.INITIAL_DELAY, "") in self._timers:
            return NO_TASKS, "Assignment delayed due to the configured initial rebalance delay."
        delay = None
        if self.hard_state.target.epoch < self.hard_state.epoch:
            if self._may_assign(configured, now_ms):
                self._write(new_target(self.hard_state, configured, now_ms))
            else:
                delay = "Assignment delayed due to the configured assignment interval."
        return self.hard_state.target.tasks.get(member_id, NO_TASKS), delay

    def _may_assign(self, configured: ConfiguredTopology, now_ms: int) -> bool:
        last_ms = self.hard_state.target.at_ms
        if last_ms is None or last_ms > now_ms:  # the clock was ahead before a restart
            return True
        num_tasks = sum(configured.num_tasks.values())
        return now_ms >= last_ms + self.limits.assignment_interval_of(len(self.members), num_tasks)

    def _reconcile(self, event: StreamsHeartbeat, target: Tasks, now_ms: int) -> None:
        """Move a member one step towards its target."""
        member = self.members[event.member_id]
        after = next_assignment(self.hard_state, member, target, event.owned)
        if after != member.current:
            self._write(after)
            self._restart_rebalance(member, now_ms)

    def _restart_session(self, member_id: str, now_ms: int) -> None:
        self._timers.set((Timer.SESSION, member_id), now_ms + self.limits.session_timeout_ms)

    def _restart_rebalance(self, member: StreamsMember, now_ms: int) -> None:
        has_to_revoke = member.current.state is StreamsMemberState.UNREVOKED_TASKS
        due_ms = now_ms + member.metadata.rebalance_timeout_ms if has_to_revoke else None
        self._timers.set((Timer.REBALANCE, member.member_id), due_ms)

    def _on_due(self, timer: Timer, member_id: str, now_ms: int) -> Turns[None]:
        match timer:
            case Timer.SESSION:
                yield from super()._on_due(timer, member_id, now_ms)
            case Timer.REBALANCE:
                yield from self._remove(member_id, f"{member_id} did not revoke its tasks within its rebalance timeout")
            case Timer.INITIAL_DELAY:
                configured = self.configured
                behind = self.hard_state.target.epoch < self.hard_state.epoch
                if self.members and configured is not None and behind and self._may_assign(configured, now_ms):
                    self._write(new_target(self.hard_state, configured, now_ms))

    def _forget(self, member_id: str) -> None:
        for kind in ("streams-member", "streams-current"):
            self._write(Tombstone(group_id=self.group_id, key=(kind, member_id)))
        target = self.hard_state.target
        if member_id in target.tasks:
            self._write(replace(target, tasks={each: its for each, its in target.tasks.items() if each != member_id}))
        if not self.members:
            self._shut_down_by = None

    def _write(self, record: StreamsRecord) -> None:
        self.hard_state.apply(record)
        self._append(record)

    def _unknown(self, member_id: str) -> StreamsHeartbeatReply:
        message = f"Member {member_id} is not a member of group {self.group_id}."
        return _refused(ErrorCode.UNKNOWN_MEMBER_ID, message)


def _refused(error: ErrorCode, message: str | None) -> StreamsHeartbeatReply:
    return StreamsHeartbeatReply(error=error, message=message)
