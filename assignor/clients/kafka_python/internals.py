"""kafka-python's coordinator and fetcher with fixes, for the consumers of our factories.

Both classes are private to the client. So they are used only with tested versions. A consumer of another version is not
changed, and a warning is logged: ``TRIED`` in `loadwise.assignor.clients.kafka_python`.

**Joins.** A join continues in the background if ``poll`` times out. kafka-python 3.0 loses such a join if only a
changed subscription or new metadata caused it. ``need_rejoin`` is False once the join has begun, so no later ``poll``
takes its result. Heartbeats stay off, the broker evicts the member, and the member keeps its old assignment. (Java's
``AbstractCoordinator.rejoinNeededOrPending`` also checks the pending join.) If the join ends before the next ``poll``,
that one begins another join and the whole group rebalances again; with short polls, forever.

**Lost places.** A member that is evicted while it joins keeps its partitions and positions, because the join's
preparation is not repeated. An eager member that misses a generation keeps its positions in partitions that it gets
back, although another member may have read on from there. Both read records twice, and their next commit moves offsets
back. (Java: ``AbstractCoordinator.resetStateAndRejoin``.)

**Generations without an assignment.** A cooperative member whose SyncGroup fails keeps its partitions and joins again
(KAFKA-13891). It must claim them for the generation that it joined, or leaders treat its claim as stale. (Java:
``ConsumerCoordinator.metadata``, KAFKA-13419.)

**Metadata.** A leader does not wait for metadata of topics that only others subscribe to, so these topics are
unassigned for one round. (Java: ``ConsumerCoordinator.onLeaderElected``.)

A client also keeps requesting metadata of topics that it has left, in a way that creates missing ones. So deleted
topics come back, whatever ``allow_auto_create_topics`` is. (Java: ``ConsumerMetadata.newMetadataRequestBuilder``.)

**Cooperative rebalances.** ``poll`` returns nothing while a join is pending, so all partitions stop, not only those
that move. (Java: ``ConsumerCoordinator.poll`` with ``waitForJoinGroup = false``.)

**Commits during eager rebalances.** ``poll`` returns while other members have not joined yet, and the client refuses
the commits that follow, although the broker accepts them until all members have joined. What was processed before is
then read again by another member. (Java's consumer refuses them too.)

**Paused partitions.** Records that were fetched before their partition was paused are set aside. They come back only
when no other batch is in progress. A batch that was read to its end counts as in progress, so they may never come back.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka import errors
from kafka.cluster import ClusterMetadata
from kafka.consumer.fetcher import Fetcher
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.base import MemberState
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import (
    FencedInstanceIdError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import JoinGroupRequest, OffsetCommitRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import OffsetAndMetadata
from kafka.util import Timer

from loadwise.assignor.clients.deleted_topics import Told, told
from loadwise.assignor.clients.held_polls import longest_wait_s
from loadwise.assignor.clients.kafka_python.lag import KafkaPythonLag
from loadwise.assignor.clients.kafka_python.watch import KafkaPythonWatch
from loadwise.assignor.clients.member_commits import MemberCommits
from loadwise.assignor.clients.no_common_strategy import no_common_strategy
from loadwise.assignor.leader import Leader
from loadwise.assignor.subscription import JoinedMember, read_described, read_joined_members
from loadwise.protocol.consumer import Assignment

log = logging.getLogger(__name__)

_PENDING_S = 0.02
"""How long a ``poll`` waits for records of kept partitions before it checks again whether the join has ended."""
_IN_ORDER_S = 0.002
"""The pause between two checks whether commits on the broker's other connection are answered."""
_METADATA_WAIT_S = 5.0
"""The longest wait of a leader for metadata; at most a third of the session timeout."""
_UPDATES = 2
"""The first update may have been requested before the topics were set; the second one covers them all."""
_ANOTHER_GENERATION = {
    error.errno for error in (IllegalGenerationError, UnknownMemberIdError, RebalanceInProgressError)
}
"""Error codes of a commit for another generation than the group's."""
_TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
"""Kafka's ``Topic.validate``."""


def repair(consumer: Any, leader: Leader | None = None, lag: KafkaPythonLag | None = None) -> None:
    """Replace the coordinator and fetcher of a ``KafkaConsumer`` that has not been polled yet by ours.

    With a ``leader`` and its ``lag`` reader, the consumer watches the group's load while it leads.
    """
    consumer._fetcher.__class__ = PausingFetcher
    consumer._cluster.__class__ = WantedTopics
    consumer._cluster.config["allow_auto_create_topics"] = consumer.config["allow_auto_create_topics"]
    coordinator = consumer._coordinator
    coordinator.__class__ = KafkaPythonCoordinator
    coordinator._manager = _Manager(coordinator._manager, coordinator)
    coordinator._commits = MemberCommits(coordinator.group_id, errors)
    coordinator.load_watch = None if leader is None or lag is None else KafkaPythonWatch(coordinator, leader, lag)


class KafkaPythonCoordinator(ConsumerCoordinator):
    """A ``ConsumerCoordinator`` that finishes joins, detects lost partitions, and reads kept ones meanwhile."""

    _last_generation = -1
    """The newest generation whose assignment was applied."""
    follows = False
    """Whether that one follows on the generation whose assignment was applied before."""
    _join_task: Any
    _untaken: tuple[Any, frozenset[str], bytes] | None = None
    """The result of a join that no ``poll`` has taken yet: generation, topics, assignment."""
    _leaving: Any = None
    """The generation that the newest JoinGroup will end."""
    answer_beside_join: Any = None
    """The newest commit answer during a join; it says nothing about the generation since."""
    failed: KafkaError | None = None
    """The error of a join for which no ``poll`` waited."""
    fenced = False
    """Whether another member has taken this member's group instance id."""
    commits_by_hand = False
    """Whether the program has called ``commit`` or ``commit_async``."""
    polled_alone = False
    """Whether the thread that polls has just polled this consumer."""
    _join_began = 0.0
    _listed: tuple[Any, Sequence[JoinedMember]] = (None, ())
    """The members in the JoinGroup answer to the leader, raw and decoded."""
    _commits: MemberCommits
    load_watch: KafkaPythonWatch | None
    """Reads the group's offsets before this member assigns, and requests rebalances; may be None."""

    def need_rejoin(self) -> bool:
        """Return whether a join must begin or finish."""
        pending = self.rejoining and self._subscription.partitions_auto_assigned()
        return bool(pending or super().need_rejoin())

    async def _send_heartbeat_request(self) -> Any:
        try:
            return await super()._send_heartbeat_request()
        except FencedInstanceIdError:
            self.fenced = True
            raise

    def check_fenced(self) -> None:
        """Raise if the member is fenced, as Java's consumer does; kafka-python's own reads on."""
        if self.fenced:
            raise FencedInstanceIdError(f"another member has taken the group instance id {self.group_instance_id!r}")

    def group_protocols(self) -> Any:
        """Return the client's protocols; a cooperative member claims its partitions for the last generation joined."""
        for assignor in self._assignors.values():
            assignor.generation = self._generation.generation_id
        return super().group_protocols()

    async def _do_join_and_sync_async(self) -> bytes:
        self._leaving = self._generation
        if self.failed is not None:
            error, self.failed = self.failed, None
            raise error
        topics = frozenset(self._subscription.subscription)
        if self._untaken is not None and self._untaken[:2] == (self._generation, topics):
            return self._untaken[2]
        try:
            assignment: bytes = await super()._do_join_and_sync_async()
        except KafkaError as error:
            self.failed = error
            if isinstance(error, InconsistentGroupProtocolError) and self._generation is self._leaving:
                self.failed = InconsistentGroupProtocolError(await self._explain_no_common_strategy())
                raise self.failed from None
            if self._generation is not self._leaving:
                self._stay()
            raise
        self._untaken = (self._generation, topics, assignment)
        self._stay()
        return assignment

    def _stay(self) -> None:
        """Send heartbeats until the next ``poll`` takes the assignment or, after a failed SyncGroup, rejoins.

        The session must not expire while the application works. (Java: heartbeats continue after the JoinGroup.)
        """
        with self._lock:
            if not self._generation.is_lost():
                self.state = MemberState.STABLE
                self._enable_heartbeat()

    async def _explain_no_common_strategy(self) -> str:
        in_use = ""
        try:
            in_use = (await self._described()).protocol_data
        except KafkaError as error:
            log.warning("Group %s cannot be described (%r)", self.group_id, error)
        return no_common_strategy(self.group_id, in_use, list(self._assignors))

    async def _on_join_prepare_async(self, *args: Any, **kwargs: Any) -> None:
        await super()._on_join_prepare_async(*args, **kwargs)
        if self._generation.is_lost() and self._subscription.assigned_partitions():
            await super()._on_join_prepare_async(
                *args, **kwargs
            )  # the commit failed because the member has lost its membership
        self._join_began = time.monotonic()

    async def _send_offset_commit_request(self, offsets: Mapping[Any, OffsetAndMetadata]) -> None:
        """Commit, and retry for up to a request timeout while that may succeed before the next ``poll``."""
        timer = Timer(self.config["request_timeout_ms"])

        def membership() -> tuple[Any, bool]:
            return self._generation, self._commits_beside_join

        def goes_on(before: tuple[Any, bool], error: Exception) -> bool:
            generation, joining = membership()
            # NodeNotReadyError: the other connection is busy with fetches
            in_between = isinstance(error, RebalanceInProgressError | NodeNotReadyError) and not timer.expired
            return in_between and (before[1] or joining or generation is not before[0])

        def state_of(partition: Any) -> object:
            return self._subscription.assignment.get(partition)

        await self._commits.patiently(
            offsets,
            self._commit_what_exists,
            goes_on=goes_on,
            membership=membership,
            state_of=state_of,
            sleep=self._net.sleep,
        )

    async def _commit_what_exists(self, offsets: Mapping[Any, OffsetAndMetadata]) -> None:
        """Commit, without offsets of deleted topics, and with a note about this member's speed."""
        watch = self.load_watch
        noted = watch is not None and all(isinstance(at, OffsetAndMetadata) for at in offsets.values())
        note = partial(watch.note, self._generation.member_id) if watch is not None and noted else None
        await self._commits.existing(offsets, super()._send_offset_commit_request, note, self._told_of)

    async def _told_of(self, topics: Set[str]) -> Told:
        """Return the metadata of these topics from the group's broker."""
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=topic) for topic in sorted(topics)],
            allow_auto_topic_creation=False,
        )
        answer = await self._manager.send(request, node_id=self.coordinator())
        found = (
            (topic.name, topic.error_code, [each.partition_index for each in topic.partitions])
            for topic in answer.topics
        )
        return told(found, len(answer.brokers))

    def _handle_offset_commit_response(self, offsets: Any, send_time: float, response: Any) -> None:
        codes = {code for _, partitions in response.topics for _, code in partitions}
        if response is self.answer_beside_join and codes & _ANOTHER_GENERATION:
            raise RebalanceInProgressError(f"group {self.group_id} has rebalanced; commit again after a poll")
        super()._handle_offset_commit_response(offsets, send_time, response)

    @property
    def join_has_ended(self) -> bool:
        """Return whether the next ``poll`` can take a result at once: an assignment or an error."""
        topics = frozenset(self._subscription.subscription)
        taken = self._untaken is None or self._untaken[:2] != (self._generation, topics)
        return self.failed is not None or not taken

    def reset_generation(self, *args: Any, **kwargs: Any) -> None:
        """Reset the generation and repeat the join's preparation, so that lost partitions are revoked."""
        super().reset_generation(*args, **kwargs)
        if self._subscription.assigned_partitions():
            self.rejoining = False
        if self._join_task is not None and self._join_task.is_done:
            self._join_task = None  # an assignment of the lost generation

    async def _on_join_complete_async(self, generation: int, member_id: str, protocol: str, assignment: bytes) -> None:
        self._untaken = None
        self.follows = generation == self._last_generation + 1
        if self._cooperative:
            await self._commit_what_goes(assignment)
        elif not self.follows:
            self._subscription.assign_from_subscribed([])  # others may have read on, so positions are invalid
        self._last_generation = generation
        await super()._on_join_complete_async(generation, member_id, protocol, assignment)
        if not self._subscription.subscribed_pattern:
            self._cluster.set_topics(self._subscription.group_subscription())  # the subscription may be smaller now
        assignor = self._lookup_assignor(protocol)
        if assignor.participant.to_resume:
            await self._resume(assignor)

    async def _resume(self, assignor: Any) -> None:
        """Read this member's own assignment from before its restart from the broker, and watch it."""
        try:
            group = await self._described()
            # Between two generations, DescribeGroups has no strategy, subscriptions or assignments.
            known = group.error_code == 0 and group.group_state == "Stable"
            described = read_described(
                (each.member_id, each.group_instance_id, each.member_metadata, each.member_assignment)
                for each in (group.members if known else ())
            )
            if described:
                assignor.resume(self._cluster, described)
        except KafkaError as error:
            log.warning("Group %s cannot be described (%r): its load is not watched for now", self.group_id, error)

    async def _described(self) -> Any:
        request = DescribeGroupsRequest(groups=[self.group_id])
        return (await self._manager.send(request, node_id=self.coordinator_id)).groups[0]

    async def _commit_what_goes(self, assignment: bytes) -> None:
        """Commit the records read during the join from partitions that are about to be revoked."""
        kept = Assignment.decode(assignment).partitions
        consumed: Mapping[Any, OffsetAndMetadata] = self._subscription.all_consumed_offsets()
        going = {
            partition: at
            for partition, at in consumed.items()
            if partition.partition not in kept.get(partition.topic, ())
        }
        if not (going and self.config["enable_auto_commit"]):
            return
        try:
            await self._commit_offsets_sync_async(going, timeout_ms=self.config["session_timeout_ms"] // 3)
        except KafkaError as error:
            log.warning("Offsets of revoked partitions could not be committed (%r): records will be read again", error)

    def _perform_assignment(self, leader_id: str, protocol_name: str, members: Sequence[Any]) -> Any:
        """Watch all members' topics and assign, as the client does.

        The client stops the group if it cannot decode a member, and passes an assignor only half of what members sent.
        """
        del leader_id
        joined = self._read(members)
        self._listed = (None, ())
        self._watch_topics({topic for member in joined for topic in member.subscription.topics})
        self._cluster.request_update()
        self._is_leader = True
        self._assignment_snapshot = self._metadata_snapshot
        return self._lookup_assignor(protocol_name).lead(self._cluster, joined)

    def _read(self, members: Sequence[Any]) -> Sequence[JoinedMember]:
        if self._listed[0] is not members:
            told = ((member.member_id, member.group_instance_id, member.metadata) for member in members)
            self._listed = (members, read_joined_members(told))
        return self._listed[1]

    async def prepare_to_lead(self, members: Sequence[Any]) -> None:
        """Between JoinGroup and SyncGroup, wait for a reading and for metadata of other members' topics.

        Heartbeats are off meanwhile, so this takes at most a third of the session timeout.
        """
        topics = {topic for member in self._read(members) for topic in member.subscription.topics}
        if self.load_watch is not None:
            self.load_watch.start(topics, self._generation.member_id)
        await self._wait_for_metadata(topics)
        if self.load_watch is not None:
            await self.load_watch.read(self._manager._net.sleep)

    async def _wait_for_metadata(self, topics: Set[str]) -> None:
        timer = Timer(min(1000 * _METADATA_WAIT_S, self.config["session_timeout_ms"] / 3))
        for _ in range(_UPDATES):
            if all(self._cluster.partitions_for_topic(topic) is not None for topic in topics):
                return
            self._watch_topics(topics)
            try:
                await self._manager.wait_for(self._cluster.request_update(), timer.timeout_ms)
            except UnknownTopicOrPartitionError as error:
                log.info("Some of the group's topics do not exist (%r)", error)  # the client logs each as an error
                return
            except KafkaError as error:
                log.warning("Topics without metadata are left out until the next rebalance (%r)", error)
                return

    def _watch_topics(self, topics: Set[str]) -> None:
        """Request metadata of these topics from now on; the client raises for an invalid name."""
        self._subscription.group_subscribe(set(filter(_TOPIC_NAME.fullmatch, topics)))
        self._cluster.set_topics(self._subscription.group_subscription())

    @property
    def _cooperative(self) -> bool:
        return bool(self._rebalance_protocol == RebalanceProtocol.COOPERATIVE)

    @property
    def joining_beside(self) -> bool:
        """Return whether partitions are being read while a join is pending."""
        return self._cooperative and self.rejoining and bool(self._subscription.assigned_partitions())

    @property
    def _commits_beside_join(self) -> bool:
        """Return whether a join is pending and commits may succeed meanwhile.

        Those of a cooperative member do, because nobody gets its partitions before its next join. Those of an eager
        one do until the JoinGroup is answered.
        """
        return super().rebalance_in_progress() and (self.joining_beside or self._leaves_what_it_has)

    @property
    def _leaves_what_it_has(self) -> bool:
        """Return whether an eager join is pending whose JoinGroup was not answered: nobody has its partitions yet.

        After a failed SyncGroup the member's generation is newer than its assignment, and others may have read on.
        """
        return bool(
            self.rejoining
            and not self._cooperative
            and self._subscription.assigned_partitions()
            and not self._generation.is_lost()
            and self._generation.generation_id == self._last_generation
        )

    async def wait_for_join(self, wait_for: Callable[[float | None], Awaitable[Any]], timeout_ms: float | None) -> Any:
        """Wait for the join for this timeout, or longer: see `loadwise.assignor.clients.held_polls`."""
        eager = not self._cooperative and self._subscription.assigned_partitions()
        if timeout_ms is None or not (eager and self.commits_by_hand and self.polled_alone):
            return await wait_for(timeout_ms)
        longest_s = longest_wait_s(self.config["max_poll_interval_ms"])
        left_s = self._join_began + longest_s - time.monotonic()
        try:
            return await wait_for(max(timeout_ms, 1000 * left_s))
        except KafkaTimeoutError:
            if self._leaves_what_it_has:
                raise
        return await wait_for(1000 * longest_s)  # commits are refused until the join has ended

    def poll(self, timeout_ms: float | None = None) -> bool:
        """Poll as the client does, but keep reading kept partitions while the group rebalances."""
        polled = super().poll(timeout_ms=timeout_ms)
        self.check_fenced()
        if polled:
            return True
        if not self.joining_beside:
            return False
        self.poll_heartbeat()
        return True

    def generation_if_stable(self) -> Any:
        """Return the generation, also while it ends: the broker accepts its commits until all members have joined.

        Then an eager member has none until it has taken its assignment, because others may own its old partitions.
        """
        if self.rejoining and not self._cooperative:
            return self._generation if self._leaves_what_it_has else None
        if self.joining_beside and self.rebalance_in_progress() and self._generation is self._leaving:
            return self._leaving
        return super().generation_if_stable()

    def rebalance_in_progress(self) -> bool:
        """Whether a rebalance is in progress; for an eager member, until it has taken its assignment."""
        return bool(super().rebalance_in_progress() or (self.rejoining and not self._cooperative))

    def coordinator(self) -> Any:
        """Return the coordinator's connection; commits bypass a pending JoinGroup on the broker's other connection.

        A broker answers the requests of a connection in order, and a JoinGroup only once all members have joined.
        """
        node_id = super().coordinator()
        if node_id is None or not self._commits_beside_join:
            return node_id
        broker_id = int(str(node_id).rpartition("-")[2])
        return node_id if self._cluster.broker_metadata(broker_id) is None else broker_id

    def time_to_next_poll(self) -> float:
        """Return the seconds until the next poll; a pending join has no heartbeats to wait for."""
        return _PENDING_S if self.joining_beside else float(super().time_to_next_poll())


class WantedTopics(ClusterMetadata):
    """A ``ClusterMetadata`` that does not request topics that its consumer has left: the broker would recreate them."""

    _topics: Set[str]
    _wanted: Set[str] | None = None

    def set_topics(self, topics: Iterable[str]) -> Any:
        """Set the topics; the client's own method ignores a subset of its current topics."""
        self._wanted = wanted = set(topics)
        self._topics = self._topics & wanted
        return super().set_topics(wanted)

    def metadata_request(self) -> Any:
        """Request others, which ``add_topic`` adds for their offsets, once and without creating topics."""
        request = super().metadata_request()
        if self._wanted is not None and not self._topics <= self._wanted:
            request.allow_auto_topic_creation = False
            self._topics = self._topics & self._wanted
        return request


class PausingFetcher(Fetcher):
    """A ``Fetcher`` that returns the records of partitions that were paused and resumed."""

    _next_partition_records: Any

    def fetched_records(self, *args: Any, **kwargs: Any) -> Any:
        """Fetch as the client does, which wrongly treats a batch that was read to its end as in progress."""
        if self._next_partition_records is not None and not self._next_partition_records:
            self._next_partition_records = None
        return super().fetched_records(*args, **kwargs)


@dataclass(slots=True, eq=False)
class _SentCommit:
    node_id: Any
    sent: bool = False


class _Manager:
    """The coordinator's view of the connection manager, with a hook between JoinGroup and assignment."""

    def __init__(self, manager: Any, coordinator: KafkaPythonCoordinator) -> None:
        self._manager = manager
        self._coordinator = coordinator
        self._commits: list[_SentCommit] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    def send(self, request: Any, **how: Any) -> Any:
        if isinstance(request, JoinGroupRequest):
            return self._join(request, how)
        if isinstance(request, OffsetCommitRequest):
            return self._commit(request, how)
        return self._manager.send(request, **how)

    async def _join(self, request: Any, how: Mapping[str, Any]) -> Any:
        response = await self._manager.send(request, **how)
        if response.error_code == 0 and response.leader == response.member_id:
            await self._coordinator.prepare_to_lead(response.members)
        return response

    async def _commit(self, request: Any, how: Mapping[str, Any]) -> Any:
        coordinator = self._coordinator
        sent, beside = coordinator._generation, coordinator.rebalance_in_progress()
        commit = _SentCommit(how["node_id"])
        self._commits.append(commit)
        try:
            # Requests on two connections may overtake each other, and an older commit would then win.
            while not all(
                each.sent and each.node_id == commit.node_id for each in self._commits[: self._commits.index(commit)]
            ):
                await self._manager._net.sleep(_IN_ORDER_S)
            commit.sent = True
            response = await self._manager.send(request, **how)
        finally:
            self._commits.remove(commit)
        beside = beside or coordinator.rebalance_in_progress() or coordinator._generation is not sent
        coordinator.answer_beside_join = response if beside else None
        return response

    async def wait_for(self, future: Any, timeout_ms: float | None) -> Any:
        """Wait like the client; for a join during which partitions are read, only check whether it has ended."""
        coordinator = self._coordinator
        if future is not coordinator._join_task:
            return await self._manager.wait_for(future, timeout_ms)
        if coordinator.joining_beside and not (future.is_done or coordinator.join_has_ended):
            raise KafkaTimeoutError("the join continues in the background")
        try:
            return await coordinator.wait_for_join(partial(self._manager.wait_for, future), timeout_ms)
        finally:
            if future.is_done:
                coordinator.failed = None  # it is raised here
