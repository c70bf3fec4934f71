"""aiokafka: its coordinator, with one JoinGroup for all strategies and with cooperative rebalances (KIP-429).

`GroupCoordinator` is private to the client. So this is used with versions that it was tested with: ``TRIED`` in
`loadwise.assignor.clients.aiokafka`.

**Several strategies.** The client sends a JoinGroup for each assignor, and so a group rebalances once for each.

**What an assignor is not told.** The generation, and the other members' instance ids, racks and owned partitions. The
coordinator knows them, and hands them to our assignors.

**Cooperative rebalances.** The client gives up everything before it joins. `CooperativeCoordinator` keeps its
assignment, reads on while the join is pending, and then gives up only what it was not given again. The state of a kept
partition (position, pauses, who waits for it) is the same object before and after, so that no position jumps. Its
counterparts are ``onJoinPrepare`` and ``onJoinComplete`` of Java's ``ConsumerCoordinator``.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from aiokafka.client import ConnectionGroup
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.coordinator.protocol import ConsumerProtocol
from aiokafka.errors import (
    CommitFailedError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaError,
    KafkaTimeoutError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
from aiokafka.protocol.group import JoinGroupRequest, SyncGroupRequest
from aiokafka.protocol.metadata import MetadataRequest

from loadwise.assignor.clients.commit_notes import with_note
from loadwise.assignor.clients.deleted_topics import DeletedTopics, Told, told
from loadwise.assignor.clients.newest_commits import NewestCommits
from loadwise.assignor.clients.no_common_strategy import no_common_strategy
from loadwise.assignor.subscription import read_described, read_joined_members
from loadwise.protocol.consumer import Subscription

log = logging.getLogger(__name__)

_ANOTHER_GENERATION = {
    error.errno for error in (IllegalGenerationError, UnknownMemberIdError, RebalanceInProgressError)
}
"""Codes of a commit whose generation is not, or not any more, the group's."""
CLOSING_TIMEOUT_S = 10.0
"""How long a member that is to stop tries to commit: where no broker answers, the client does so for ever."""
_COMMIT_AGAIN_S = 0.02
"""Between two tries of a commit that the end of a join may let through."""
_NO_GENERATION = OffsetCommitRequest.DEFAULT_GENERATION_ID


def _codes(answer: Any) -> set[int]:
    """All error codes of an answer about the group's membership, or to a commit."""
    if hasattr(answer, "error_code"):
        return {answer.error_code}
    return {partition[-1] for _, partitions in answer.topics for partition in partitions}


def take_over(coordinator: GroupCoordinator, plugs: Sequence[Any], before_assignment: Callable[[Any], Any]) -> None:
    """Make a coordinator that has not run yet one of ours, cooperative where the member's strategies are.

    ``plugs`` are the assignors for the member's strategies, the preferred one first. The leader waits for
    ``before_assignment(members)`` between JoinGroup and SyncGroup.
    """
    coordinator.__class__ = CooperativeCoordinator if plugs[0].participant.cooperative else Coordinator
    coordinator.plugs = plugs
    coordinator.before_assignment = before_assignment
    coordinator.note = None
    coordinator.takes_notes = True
    coordinator.deleted_topics = DeletedTopics(coordinator.group_id)
    coordinator.newest_commits = NewestCommits()
    coordinator._assignors = plugs[:1]  # the client sends one JoinGroup for each of these
    coordinator.last_assignment = None
    coordinator.joining = False
    coordinator._id_stands = False


class Coordinator(GroupCoordinator):
    """A ``GroupCoordinator`` that joins with all strategies at once, and knows the members of its group in full."""

    plugs: Sequence[Any]
    before_assignment: Callable[[Any], Any]
    note: Callable[[], str] | None
    """What to write beside an offset that is committed, for the leader; None where nobody watches the group's load."""
    takes_notes: bool
    """Whether the broker lets offsets have as much metadata as a note of ours takes."""
    deleted_topics: DeletedTopics
    newest_commits: NewestCommits
    last_assignment: Any
    joining: bool
    """Whether a JoinGroup or its SyncGroup is not answered yet."""
    _id_stands: bool
    """Whether the newest answer refused the generation alone."""
    generation: int
    member_id: str

    @property
    def held(self) -> frozenset[Any]:
        """The partitions that the member keeps while it joins: an eager one keeps none."""
        return frozenset()

    def _lookup_assignor(self, name: str) -> Any:
        return next((plug for plug in self.plugs if plug.name == name), None)

    async def _send_req(self, request: Any) -> Any:
        if isinstance(request, JoinGroupRequest):
            topics = self._subscription.subscription.topics
            request._group_protocols[:] = [(plug.name, plug.metadata(topics)) for plug in self.plugs]
        answer = await super()._send_req(request)
        codes = _codes(answer)
        if isinstance(request, JoinGroupRequest) and RebalanceInProgressError.errno in codes:
            raise RebalanceInProgressError(self.group_id)  # the client joins again after errors of the connection only
        self._id_stands = IllegalGenerationError.errno in codes
        return answer

    def reset_generation(self) -> None:
        """As the client's; but a member whose generation alone was refused keeps its id, as Java's does.

        Without it, it would join as another member, and the group would wait for the one that it was.
        """
        member_id = self.member_id
        super().reset_generation()
        if self._id_stands:
            self.member_id = member_id

    async def _do_commit_offsets(self, assignment: Any, offsets: Mapping[Any, Any]) -> None:
        try:
            await self._commit_with_note(assignment, offsets)
        except UnknownTopicOrPartitionError:
            kept = self.deleted_topics.drop(offsets, await self._told_of({each.topic for each in offsets}))
            if len(kept) == len(offsets):
                raise
            await self._commit_with_note(assignment, kept)

    async def _commit_with_note(self, assignment: Any, offsets: Mapping[Any, Any]) -> None:
        if self.note is None:
            await super()._do_commit_offsets(assignment, offsets)
            return
        try:
            await super()._do_commit_offsets(assignment, with_note(offsets, self.note() if self.takes_notes else ""))
        except OffsetMetadataTooLargeError:
            if not self.takes_notes:
                raise
            self.takes_notes = False
            await super()._do_commit_offsets(assignment, with_note(offsets, ""))

    async def _told_of(self, topics: Collection[str]) -> Told:
        """What the group's broker tells of these topics."""
        request = MetadataRequest(sorted(topics), allow_auto_topic_creation=False)
        await self.ensure_coordinator_known()
        # Not by the group's own connection, where a JoinGroup may be answered only when all have joined.
        answer = (await self._client.send(self.coordinator_id, request, group=ConnectionGroup.DEFAULT)).to_object()
        found = (
            (topic["topic"], topic["error_code"], [each["partition"] for each in topic["partitions"]])
            for topic in answer["topics"]
        )
        return told(found, len(answer["brokers"]))

    async def _maybe_do_last_autocommit(self, assignment: Any) -> None:
        await self._for_long_unless_closing(super()._maybe_do_last_autocommit(assignment))

    async def _for_long_unless_closing(self, commit: Coroutine[Any, Any, None]) -> None:
        """Let a commit take as long as it takes; but once the member is to stop, `CLOSING_TIMEOUT_S` at most."""
        task = asyncio.ensure_future(commit)
        try:
            await asyncio.wait([task, self._closing], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([task], timeout=CLOSING_TIMEOUT_S)
            if not task.done():
                raise KafkaTimeoutError(f"offsets of group {self.group_id} could not be committed before it was left")
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
        """Learn from the broker what this member assigned before it was restarted, and watch that."""
        try:
            error_code, _, state, _, protocol, members, *_ = await self._described()
            # Between two generations, a group is described without its strategy, subscriptions and assignments.
            known = error_code == 0 and state == "Stable"
            described = read_described(
                (member_id, self._group_instance_id if member_id == self.member_id else None, metadata, assignment)
                for member_id, _, _, metadata, assignment in (members if known else ())
            )
            if described:
                self._lookup_assignor(protocol).resume(self._cluster, described)
        except KafkaError as error:
            log.warning("Group %s cannot be described (%r): nobody watches its load for now", self.group_id, error)

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
        joined = read_joined_members(
            (member_id, instance_id[0] if instance_id else None, data)
            for member_id, *instance_id, data in response.members
        )
        # The client decodes all members as well, for their topics, and one that it cannot decode ends its work.
        readable: dict[int, bytes] = {}
        for member in joined:
            topics = member.subscription.topics
            if id(topics) not in readable:  # most members share their list with others
                readable[id(topics)] = Subscription(topics=topics).encode()
        response.members = [
            (*listed[:-1], readable[id(member.subscription.topics)])
            for listed, member in zip(response.members, joined, strict=True)
        ]
        await self.before_assignment(joined)
        plug = self._lookup_assignor(response.group_protocol)
        plug.joined = joined
        try:
            return await super()._perform_assignment(response)
        finally:
            plug.joined = ()


class CooperativeCoordinator(Coordinator):
    """A ``GroupCoordinator`` whose consumer keeps its partitions while it joins (KIP-429)."""

    @property
    def held(self) -> frozenset[Any]:
        """The partitions that the member keeps while it joins."""
        return frozenset() if self.last_assignment is None else frozenset(self.last_assignment.tps)

    async def _send_req(self, request: Any) -> Any:
        if not isinstance(request, OffsetCommitRequest | OffsetFetchRequest):
            answer = await super()._send_req(request)
            if isinstance(request, SyncGroupRequest):
                self.joining = False
            return answer
        sent, beside = self.generation, self.joining
        if beside:
            # A broker answers the requests of a connection in their order, and a JoinGroup only when all have joined.
            # Its consumer reads on meanwhile, and must be able to commit.
            await self.ensure_coordinator_known()
            answer = await self._client.send(self.coordinator_id, request, group=ConnectionGroup.DEFAULT)
        else:
            answer = await super()._send_req(request)
        if isinstance(request, OffsetCommitRequest) and (beside or self.joining or self.generation != sent):
            codes = _codes(answer)
            if self.generation == sent and UnknownMemberIdError.errno in codes:
                raise UnknownMemberIdError(self.group_id)  # the answer to JoinGroup says so, too
            if codes & _ANOTHER_GENERATION:  # that is no news of the generation since
                raise RebalanceInProgressError(self.group_id)
        return answer

    async def commit_offsets(self, assignment: Any, offsets: Mapping[Any, Any]) -> None:
        """As the client's; but a commit of partitions that the member keeps outlasts a rebalance.

        The broker takes commits of the old generation until all have joined, and of the new one from the leader's
        SyncGroup on. In between a commit is tried again.
        """
        held = self._states_of(offsets)
        number = self.newest_commits.begin(offsets)
        try:
            left = offsets
            while left:
                # Where the join ends before the answer to the commit is here, it was under way all the same.
                generation, joining = self.generation, self.joining
                try:
                    await super().commit_offsets(assignment, left)
                    return
                except CommitFailedError as error:
                    goes_on = joining or self.joining or self.generation not in (generation, _NO_GENERATION)
                    if not (goes_on and isinstance(error.__cause__, RebalanceInProgressError)):
                        raise
                    if self._states_of(offsets) != held or asyncio.current_task() is self._coordination_task:
                        raise
                await asyncio.sleep(_COMMIT_AGAIN_S)
                left = self.newest_commits.of(number, left)
        finally:
            self.newest_commits.end()

    def _states_of(self, partitions: Iterable[Any]) -> list[int | None]:
        """What stands for each partition since it was assigned: another object, if it was lost meanwhile."""
        current = self.last_assignment
        held = self.held
        return [id(current.state_value(each)) if each in held else None for each in partitions]

    def reset_generation(self) -> None:
        """Forget the generation; what precedes a join is done again, so that it gives up what was lost with it."""
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
        plug = self._lookup_assignor(protocol)
        assert plug, f"invalid assignment protocol: {protocol}"
        assignment = ConsumerProtocol.ASSIGNMENT.decode(assignment_bytes)
        given = frozenset(assignment.partitions())
        revoked, added = self.held - given, given - self.held
        if revoked:
            await self._give_up(revoked)
        if not self._subscription.subscription.active:
            return
        self._assign(given)
        plug.on_assignment(assignment)
        log.info("Group %s gave %s and took %s", self.group_id, sorted(added), sorted(revoked))
        await self._tell("on_partitions_assigned", added)
        if revoked:
            self.request_rejoin()  # now that nobody has them, they can be given to their new owners

    async def _give_up(self, revoked: Collection[Any]) -> None:
        """Stop reading partitions, and commit what was read of them while the join was pending."""
        current = self.last_assignment
        for partition in revoked:
            current.state_value(partition).pause()
        if self._enable_auto_commit:
            consumed = current.all_consumed_offsets()
            going = {partition: consumed[partition] for partition in revoked if partition in consumed}
            try:
                await self._for_long_unless_closing(self.commit_offsets(current, going))
            except KafkaError as error:
                log.warning("Offsets of revoked partitions could not be committed (%r): others read them again", error)
        await self._tell("on_partitions_revoked", revoked)

    def _assign(self, partitions: Collection[Any]) -> None:
        """Give the consumer these partitions; those that it has already go on as they are."""
        before = self.last_assignment
        self._subscription.assign_from_subscribed(list(partitions))
        now = self.last_assignment = self._subscription.subscription.assignment
        if before is not None:
            for partition in now.tps & before.tps:
                state = now._tp_state[partition] = before._tp_state[partition]
                state._assignment = now
        self.start_commit_offsets_refresh_task(now)

    async def _maybe_do_last_autocommit(self, assignment: Any) -> None:
        # What the client passes may be an assignment of before, with partitions that others own by now.
        await super()._maybe_do_last_autocommit(self.last_assignment or assignment)

    async def _tell(self, method: str, partitions: Collection[Any]) -> None:
        """Call the user's listener, as the client does. One that does not know of losses is told of a revocation."""
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
