"""aiokafka's coordinator with one JoinGroup for all strategies and with cooperative rebalances (KIP-429).

`GroupCoordinator` is private to the client. So this is used only with versions that it was tested with: ``TRIED`` in
`loadwise.assignor.clients.aiokafka`.

**Several strategies.** The client sends a JoinGroup for each assignor, so a group rebalances once for each.

**Missing data.** The client does not pass an assignor the generation, nor the other members' instance ids, racks and
owned partitions. The coordinator here passes them to our assignors.

**Commits by hand.** The client joins in the background, whatever the program does, and refuses its commits afterwards.
So what it has processed is read again by another member. Here a join takes partitions only once the program comes for
more records and its commits are answered, or after half of the rebalance timeout. (Java's consumer joins in ``poll``.)

**Cooperative rebalances.** The client revokes everything before it joins. `CooperativeCoordinator` keeps its assignment
and goes on reading while the join is pending. Then it revokes only partitions that it was not assigned again. The state
object of a kept partition (position, pauses, waiters) stays the same, so that no position jumps. The counterparts are
``onJoinPrepare`` and ``onJoinComplete`` of Java's ``ConsumerCoordinator``.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from aiokafka import errors
from aiokafka.client import ConnectionGroup
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.coordinator.protocol import ConsumerProtocol
from aiokafka.errors import (
    CommitFailedError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
from aiokafka.protocol.group import JoinGroupRequest, SyncGroupRequest
from aiokafka.protocol.metadata import MetadataRequest

from loadwise.assignor.clients.aiokafka.watch import AiokafkaWatch
from loadwise.assignor.clients.deleted_topics import Told, told
from loadwise.assignor.clients.member_commits import AGAIN_S, MemberCommits
from loadwise.assignor.clients.no_common_strategy import no_common_strategy
from loadwise.assignor.subscription import read_described, read_joined_members

log = logging.getLogger(__name__)

_ANOTHER_GENERATION = {
    error.errno for error in (IllegalGenerationError, UnknownMemberIdError, RebalanceInProgressError)
}
"""Error codes of a commit for another generation than the group's."""
CLOSING_TIMEOUT_S = 10.0
"""How long a closing member tries to commit; without a broker, the client would try forever."""
OF_REBALANCE_TIMEOUT = 1 / 2
"""How long a join waits for a program that commits by hand, as a part of ``rebalance_timeout_ms``."""
_NO_GENERATION = OffsetCommitRequest.DEFAULT_GENERATION_ID


def _codes(answer: Any) -> set[int]:
    """Return all error codes in an answer to a membership request or a commit."""
    if hasattr(answer, "error_code"):
        return {answer.error_code}
    return {partition[-1] for _, partitions in answer.topics for partition in partitions}


def take_over(coordinator: GroupCoordinator, plugs: Sequence[Any], before_assignment: Callable[[Any], Any]) -> None:
    """Replace a coordinator that has not run yet by ours, cooperative if the member's strategies are.

    ``plugs`` are the assignors of the member's strategies in order of preference. The leader waits for
    ``before_assignment(members)`` between JoinGroup and SyncGroup.
    """
    coordinator.__class__ = CooperativeCoordinator if plugs[0].participant.cooperative else AiokafkaCoordinator
    coordinator.plugs = plugs
    coordinator.before_assignment = before_assignment
    coordinator.commits = MemberCommits(coordinator.group_id, errors)
    coordinator._assignors = plugs[:1]  # the client sends one JoinGroup for each of these


class AiokafkaCoordinator(GroupCoordinator):
    """A ``GroupCoordinator`` that joins with all strategies at once and keeps full data of the group's members."""

    plugs: Sequence[Any]
    before_assignment: Callable[[Any], Any]
    watch: AiokafkaWatch | None = None
    """Watches the group's load; may be None."""
    commits: MemberCommits
    last_assignment: Any = None
    joining = False
    """Whether a JoinGroup or its SyncGroup is pending."""
    commits_by_hand = False
    """Whether the program has called ``commit``."""
    _committing = 0
    """How many commits are under way."""
    _came_for_records: asyncio.Event | None = None
    """Set by a program that comes for records; there while a join waits for that."""
    _last_generation = _NO_GENERATION
    """The newest generation whose assignment was applied."""
    _id_stands = False
    """Whether the newest answer refused only the generation."""
    generation: int
    member_id: str
    _group_subscription: set[str] | None

    @property
    def held(self) -> frozenset[Any]:
        """The partitions that the member keeps while it joins; an eager one keeps none."""
        return frozenset()

    def _lookup_assignor(self, name: str) -> Any:
        return next((plug for plug in self.plugs if plug.name == name), None)

    async def _send_req(self, request: Any) -> Any:
        if isinstance(request, JoinGroupRequest):
            topics = self._subscription.subscription.topics
            request._group_protocols[:] = [(plug.name, plug.metadata(topics)) for plug in self.plugs]
        if isinstance(request, OffsetCommitRequest | OffsetFetchRequest):
            return await self._send_beside_join(request)
        answer = await super()._send_req(request)
        codes = _codes(answer)
        if isinstance(request, SyncGroupRequest):
            self.joining = False
        if isinstance(request, JoinGroupRequest) and RebalanceInProgressError.errno in codes:
            raise RebalanceInProgressError(self.group_id)  # the client retries only after connection errors
        self._id_stands = IllegalGenerationError.errno in codes
        return answer

    async def _send_beside_join(self, request: Any) -> Any:
        """Send a request about offsets, also while a JoinGroup is pending.

        A broker answers the requests of a connection in order, and a JoinGroup only once all members have joined.
        """
        sent, beside = self.generation, self.joining
        if isinstance(request, OffsetCommitRequest) and not self._may_commit:
            raise RebalanceInProgressError(self.group_id)
        if beside:
            await self.ensure_coordinator_known()
            answer = await self._client.send(self.coordinator_id, request, group=ConnectionGroup.DEFAULT)
        else:
            answer = await super()._send_req(request)
        codes = _codes(answer)
        self._id_stands = IllegalGenerationError.errno in codes
        if isinstance(request, OffsetCommitRequest) and (beside or self.joining or self.generation != sent):
            if self.generation == sent and UnknownMemberIdError.errno in codes:
                raise UnknownMemberIdError(self.group_id)  # the JoinGroup answer has this error, too
            if codes & _ANOTHER_GENERATION:  # the answer concerns an old generation
                raise RebalanceInProgressError(self.group_id)
        return answer

    @property
    def _may_commit(self) -> bool:
        """Return whether nobody else has got the partitions of an eager member since its last assignment."""
        return self.generation in (self._last_generation, _NO_GENERATION)

    async def commit_offsets(self, assignment: Any, offsets: Mapping[Any, Any]) -> None:
        """Commit, and retry during a rebalance if the member keeps the partitions."""

        def goes_on(before: tuple[int, bool], error: Exception) -> bool:
            in_between = isinstance(error, CommitFailedError) and isinstance(error.__cause__, RebalanceInProgressError)
            if not in_between or asyncio.current_task() is self._coordination_task:
                return False
            return before[1] or self.joining or self.generation not in (before[0], _NO_GENERATION)

        def state_of(partition: Any) -> object:
            return None if self.last_assignment is None else self.last_assignment.state_value(partition)

        self._committing += 1
        try:
            await self.commits.patiently(
                offsets,
                partial(super().commit_offsets, assignment),
                goes_on=goes_on,
                membership=lambda: (self.generation, self.joining),
                state_of=state_of,
                sleep=asyncio.sleep,
            )
        finally:
            self._committing -= 1

    async def come_for_records(self) -> None:
        """Let a join that waits for the program take partitions; to be called before it gets records."""
        while self._came_for_records is not None:
            self._came_for_records.set()
            await asyncio.sleep(AGAIN_S)

    async def _wait_for_commits(self) -> None:
        """Wait until the program has committed what it wants to before it comes for more records."""
        if not self.commits_by_hand:
            return
        came = self._came_for_records = asyncio.Event()
        deadline = time.monotonic() + OF_REBALANCE_TIMEOUT * self._rebalance_timeout_ms / 1000
        while not self._closing.done() and time.monotonic() < deadline:
            waits_for_records = came.is_set() or self._subscription.fetcher_idle_time == 0
            if waits_for_records and not self._committing:
                break
            await asyncio.sleep(AGAIN_S)
        self._came_for_records = None

    async def _on_join_prepare(self, previous_assignment: Any) -> None:
        if self.generation != _NO_GENERATION:
            await self._wait_for_commits()
        await super()._on_join_prepare(previous_assignment)

    async def _on_join_complete(self, generation: int, _member_id: str, protocol: str, assignment_bytes: bytes) -> None:
        """Assign as the client does, but keep the positions of partitions that stay, if the program may not know.

        It may still have records of them, and commits these.
        """
        plug, assignment = self._read_assignment(protocol, assignment_bytes)
        follows = generation == self._last_generation + 1  # else other members may have read on from there
        self._last_generation = generation
        keeps = follows and self.commits_by_hand and self._subscription.listener is None
        self._assign(assignment.partitions(), keeps_positions=keeps)
        plug.on_assignment(assignment)
        assigned = self._subscription.assigned_partitions()
        log.info("Setting newly assigned partitions %s for group %s", assigned, self.group_id)
        await self._tell("on_partitions_assigned", assigned)

    def _read_assignment(self, protocol: str, assignment_bytes: bytes) -> tuple[Any, Any]:
        plug = self._lookup_assignor(protocol)
        assert plug, f"invalid assignment protocol: {protocol}"
        return plug, ConsumerProtocol.ASSIGNMENT.decode(assignment_bytes)

    def _assign(self, partitions: Collection[Any], *, keeps_positions: bool = True) -> None:
        """Assign these partitions to the consumer; those that it already has keep their state."""
        before = self.last_assignment
        self._subscription.assign_from_subscribed(list(partitions))
        now = self.last_assignment = self._subscription.subscription.assignment
        if before is not None and keeps_positions:
            for partition in now.tps & before.tps:
                state = now._tp_state[partition] = before._tp_state[partition]
                state._assignment = now
        self.start_commit_offsets_refresh_task(now)

    def reset_generation(self) -> None:
        """Reset, but keep the member id if only the generation was refused, as Java does.

        Without its id, it would join as another member, and the group would wait for the old one.
        """
        member_id = self.member_id
        super().reset_generation()
        self._last_generation = _NO_GENERATION
        if self._id_stands:
            self.member_id = member_id

    async def _do_commit_offsets(self, assignment: Any, offsets: Mapping[Any, Any]) -> None:
        note = None if self.watch is None else partial(self.watch.note, self.member_id)
        await self.commits.existing(offsets, partial(super()._do_commit_offsets, assignment), note, self._told_of)

    async def _told_of(self, topics: Collection[str]) -> Told:
        """Return the metadata of these topics from the group's broker."""
        request = MetadataRequest(sorted(topics), allow_auto_topic_creation=False)
        await self.ensure_coordinator_known()
        # Not on the group's own connection, where a JoinGroup is answered only once all members have joined.
        answer = (await self._client.send(self.coordinator_id, request, group=ConnectionGroup.DEFAULT)).to_object()
        found = (
            (topic["topic"], topic["error_code"], [each["partition"] for each in topic["partitions"]])
            for topic in answer["topics"]
        )
        return told(found, len(answer["brokers"]))

    async def _maybe_do_last_autocommit(self, assignment: Any) -> None:
        await self._for_long_unless_closing(super()._maybe_do_last_autocommit(assignment))

    async def _for_long_unless_closing(self, commit: Coroutine[Any, Any, None]) -> None:
        """Let a commit take any time, but at most `CLOSING_TIMEOUT_S` once the member is closing."""
        task = asyncio.ensure_future(commit)
        try:
            await asyncio.wait([task, self._closing], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([task], timeout=CLOSING_TIMEOUT_S)
            if not task.done():
                raise KafkaTimeoutError(f"offsets of group {self.group_id} could not be committed before leaving it")
            await task
        finally:
            task.cancel()

    async def _do_rejoin_group(self, subscription: Any) -> bool:
        self.joining = True
        try:
            joined = bool(await super()._do_rejoin_group(subscription))
        except InconsistentGroupProtocolError as error:
            raise InconsistentGroupProtocolError(await self._explain_no_common_strategy()) from error
        finally:
            self.joining = False
        if joined and self.plugs[0].participant.to_resume:
            await self._resume()
        return joined

    async def _resume(self) -> None:
        """Read this member's own assignment from before its restart from the broker, and watch it."""
        try:
            error_code, _, state, _, protocol, members, *_ = await self._described()
            # Between two generations, DescribeGroups has no strategy, subscriptions or assignments.
            known = error_code == 0 and state == "Stable"
            described = read_described(
                (member_id, self._group_instance_id if member_id == self.member_id else None, metadata, assignment)
                for member_id, _, _, metadata, assignment in (members if known else ())
            )
            if described:
                self._lookup_assignor(protocol).resume(self._cluster, described)
        except KafkaError as error:
            log.warning("Group %s cannot be described (%r): its load is not watched for now", self.group_id, error)

    async def _tell(self, method: str, partitions: Collection[Any]) -> None:
        """Call the user's listener like the client. Without on_partitions_lost, call on_partitions_revoked."""
        listener = self._subscription.listener
        if listener is None:
            return
        call = getattr(listener, method, None) or listener.on_partitions_revoked
        try:
            answer = call(set(partitions))
            if inspect.isawaitable(answer):
                await answer
        except Exception:
            log.exception("The listener %r of group %s failed in %s", listener, self.group_id, method)

    async def _described(self) -> Any:
        return (await super()._send_req(DescribeGroupsRequest([self.group_id]))).groups[0]

    async def _explain_no_common_strategy(self) -> str:
        try:
            _, _, _, _, in_use, *_ = await self._described()
        except KafkaError as error:
            log.warning("Group %s cannot be described (%r)", self.group_id, error)
            in_use = ""
        return no_common_strategy(self.group_id, in_use, [plug.name for plug in self.plugs])

    async def _perform_assignment(self, response: Any) -> Any:
        """Watch all members' topics and assign, as the client does.

        The client stops the group if it cannot decode a member, and passes an assignor only half of what members sent.
        """
        joined = read_joined_members(
            (member_id, instance_id[0] if instance_id else None, data)
            for member_id, *instance_id, data in response.members
        )
        await self.before_assignment(joined)
        self._group_subscription = {topic for member in joined for topic in member.subscription.topics}
        if not self._subscription.subscribed_pattern:
            self._client.set_topics(self._group_subscription)
        await self._client._maybe_wait_metadata()
        assigned = self._lookup_assignor(response.group_protocol).lead(self._cluster, joined)
        self._metadata_snapshot = self._get_metadata_snapshot()
        return assigned


class CooperativeCoordinator(AiokafkaCoordinator):
    """A ``GroupCoordinator`` whose consumer keeps its partitions while it joins (KIP-429)."""

    _may_commit = True

    @property
    def held(self) -> frozenset[Any]:
        """The partitions that the member keeps while it joins."""
        return frozenset() if self.last_assignment is None else frozenset(self.last_assignment.tps)

    def reset_generation(self) -> None:
        """Reset the generation and repeat the join's preparation, so that lost partitions are revoked."""
        super().reset_generation()
        self._performed_join_prepare = False

    async def _on_join_prepare(self, previous_assignment: Any) -> None:  # noqa: ARG002 (it may be older than ours)
        self._group_subscription = None
        if self.last_assignment is None:
            return
        if self.generation == _NO_GENERATION:
            lost = self.held
            self._assign(())
            await self._tell("on_partitions_lost", lost)
            return
        try:
            await self._maybe_do_last_autocommit(self.last_assignment)
        except KafkaError as error:
            log.error("OffsetCommit failed before join, ignoring: %s", error)
        topics = self._subscription.subscription.topics
        left = {partition for partition in self.held if partition.topic not in topics}
        if left:
            await self._tell("on_partitions_revoked", left)
        if left or not self.last_assignment.active:
            self._assign(self.held - left)

    async def _on_join_complete(
        self, _generation: int, _member_id: str, protocol: str, assignment_bytes: bytes
    ) -> None:
        plug, assignment = self._read_assignment(protocol, assignment_bytes)
        given = frozenset(assignment.partitions())
        revoked, added = self.held - given, given - self.held
        if revoked:
            await self._give_up(revoked)
        if not self._subscription.subscription.active:
            return
        self._assign(given)
        plug.on_assignment(assignment)
        log.info("Group %s: assigned %s, revoked %s", self.group_id, sorted(added), sorted(revoked))
        await self._tell("on_partitions_assigned", added)
        if revoked:
            self.request_rejoin()  # now that they are revoked, their new owners can get them

    async def _give_up(self, revoked: Collection[Any]) -> None:
        """Stop reading partitions, and commit the records read from them while the join was pending."""
        self._start_heartbeat_task()  # that of the last generation has ended, and this may take a while
        await self._wait_for_commits()
        current = self.last_assignment
        for partition in revoked:
            current.state_value(partition).pause()
        if self._enable_auto_commit:
            consumed = current.all_consumed_offsets()
            going = {partition: consumed[partition] for partition in revoked if partition in consumed}
            try:
                await self._for_long_unless_closing(self.commit_offsets(current, going))
            except KafkaError as error:
                log.warning(
                    "Offsets of revoked partitions could not be committed (%r): records will be read again", error
                )
        await self._tell("on_partitions_revoked", revoked)

    async def _maybe_do_last_autocommit(self, assignment: Any) -> None:
        # The client may pass an old assignment with partitions that other members own by now.
        await super()._maybe_do_last_autocommit(self.last_assignment or assignment)
