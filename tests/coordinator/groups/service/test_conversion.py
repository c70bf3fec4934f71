"""Groups that change their protocol while members are in them, under a fake clock (KIP-848's migration)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from classic_events import join_event, sync_event
from commits import commit
from consumer_groups import FakeTopics, by_name

from loadwise.coordinator.groups.classic.group import ClassicGroup
from loadwise.coordinator.groups.classic.states import GroupState
from loadwise.coordinator.groups.consumer.group import ConsumerGroup
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits, MigrationPolicy
from loadwise.coordinator.groups.effects import ConsumerHeartbeatReply, JoinReply
from loadwise.coordinator.groups.events import Committer, ConsumerHeartbeat, Event, Heartbeat, Leave, Leaver, Protocol
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.protocol.consumer import Assignment, Subscription
from loadwise.protocol.error_codes import ErrorCode

P0 = Partition("t", 0)


class World:
    """Groups, a clock, and what was answered."""

    def __init__(self, policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL, **limits: Any) -> None:
        self.topics = FakeTopics(t=6)
        self.limits = GroupLimits(**limits)
        self.consumer_limits = ConsumerGroupLimits(migration_policy=policy)
        self.groups = Groups(self.limits, self.consumer_limits, self.topics)
        self.now_ms = 1000
        self.tokens = count(1)
        self.fresh = count(1)
        self.replies: dict[int, Any] = {}

    @property
    def group(self) -> Any:
        return self.groups.get("g")

    def ask(self, event: Event) -> Any:
        for reply in self.groups.handle("g", event, self.now_ms):
            self.replies[reply.token] = reply.body
        return self.replies.get(getattr(event, "token", 0))

    def expire(self, ms: int) -> None:
        self.now_ms += ms
        for reply in self.groups.expire(self.now_ms):
            self.replies[reply.token] = reply.body

    def join(self, member_id: str = "", **changes: Any) -> tuple[int, Any]:
        owned = changes.pop("owned", {})
        metadata = Subscription(topics=changes.pop("topics", ["t"]), owned=owned).encode()
        token = next(self.tokens)
        fields: dict[str, Any] = {
            "fresh_member_id": f"m{next(self.fresh)}",
            "protocols": [Protocol("range", metadata)],
            "rebalance_timeout_ms": 5000,
        }
        return token, self.ask(join_event(token, member_id, **fields | changes))

    def sync(self, member_id: str, generation: int, assignments: Sequence[tuple[str, bytes]] = (), **who: Any) -> Any:
        fields = {"protocol_type": "consumer", "protocol_name": "range"} | who
        return self.ask(sync_event(next(self.tokens), member_id, generation, assignments, **fields))

    def beat(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        event = Heartbeat(token=next(self.tokens), member_id=member_id, instance_id=instance_id, generation=generation)
        error: ErrorCode = self.ask(event).error
        return error

    def consumer(self, member_id: str, epoch: int, **fields: Any) -> ConsumerHeartbeatReply:
        if epoch == 0:
            fields = {"topics": ["t"], "rebalance_timeout_ms": 5000, "owned": {}} | fields
        reply = self.ask(ConsumerHeartbeat(token=next(self.tokens), member_id=member_id, epoch=epoch, **fields))
        assert isinstance(reply, ConsumerHeartbeatReply)
        return reply

    def classic_group(self, *partitions: Sequence[int]) -> list[str]:
        """A stable classic group whose members have these partitions of t; answers with their ids."""
        members: list[str] = []
        for _ in partitions:
            token, _ = self.join()
            for member_id in members:
                self.join(member_id)
            members.append(self.replies[token].member_id)
        generation = self.group.generation
        shares = [
            (member, Assignment(partitions={"t": numbers}).encode())
            for member, numbers in zip(members, partitions, strict=True)
        ]
        for member in members:
            self.sync(member, generation, shares if member == self.group.leader else ())
        for member in members:
            assert self.beat(member, generation) is ErrorCode.NONE
        return members

    def held(self) -> dict[str, dict[str, list[int]]]:
        return {member_id: by_name(self.topics, member.held()) for member_id, member in self.group.members.items()}


def partitions_of(reply: Any) -> list[int]:
    assert reply.error is ErrorCode.NONE
    return sorted(Assignment.decode(reply.assignment).partitions.get("t", ()))


def test_an_empty_classic_group_turns_and_keeps_its_offsets() -> None:
    world = World()
    commit(world.groups, "g", Committer(), {P0: CommittedOffset(5, 0, "")})
    assert isinstance(world.group, ClassicGroup)
    assert world.consumer("a", 0).epoch == 2
    assert isinstance(world.group, ConsumerGroup)
    assert world.groups.offsets.of("g")[P0].offset == 5
    world.consumer("a", -1)
    _, joined = world.join()
    assert (joined.error, joined.generation) == (ErrorCode.NONE, 1)
    assert isinstance(world.group, ClassicGroup)
    assert world.groups.offsets.of("g")[P0].offset == 5


def test_an_empty_consumer_group_does_not_turn_for_a_member_that_it_does_not_know() -> None:
    world = World()
    world.consumer("a", 0)
    world.consumer("a", -1)
    assert world.join("m9")[1].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert isinstance(world.group, ConsumerGroup)


def test_a_refused_first_heartbeat_leaves_a_classic_group_as_it_was() -> None:
    world = World()
    world.classic_group([0, 1, 2, 3, 4, 5])
    refused = world.consumer("a", 0, topics=None, regex="(")
    assert refused.error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert isinstance(world.group, ClassicGroup)
    assert world.group.state is GroupState.STABLE


def test_a_live_classic_group_is_upgraded_step_by_step() -> None:
    world = World()
    first, second = world.classic_group([0, 1, 2], [3, 4, 5])
    generation = world.group.generation
    joined = world.consumer("a", 0)
    assert (joined.error, joined.epoch, joined.assigned) == (ErrorCode.NONE, generation + 1, {})
    assert isinstance(world.group, ConsumerGroup)
    held = world.held()
    assert (held[first], held[second]) == ({"t": [0, 1, 2]}, {"t": [3, 4, 5]}), "all keep what they had"
    # The classic members hear of it by their heartbeats, give all up, and join again.
    for member in (first, second):
        assert world.beat(member, generation) is ErrorCode.REBALANCE_IN_PROGRESS
        _, rejoined = world.join(member)
        assert (rejoined.error, rejoined.generation) == (ErrorCode.NONE, generation + 1)
        assert (rejoined.leader, rejoined.members, rejoined.protocol_name) == ("", (), "range")
        assert len(partitions_of(world.sync(member, generation + 1))) == 2
        assert world.beat(member, generation + 1) is ErrorCode.NONE
    given = world.consumer("a", generation + 1)
    assert given.assigned is not None
    assert sum(map(len, given.assigned.values())) == 2
    assert sorted(number for each in world.held().values() for number in each["t"]) == list(range(6))


def test_a_cooperative_member_gives_up_before_it_gets_on() -> None:
    world = World()
    (first,) = world.classic_group(range(6))
    generation = world.group.generation
    world.consumer("a", 0)
    assert world.beat(first, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    _, joined = world.join(first, owned={"t": list(range(6))})
    assert joined.generation == generation, "it has to give up first"
    kept = partitions_of(world.sync(first, generation))
    assert len(kept) == 3
    assert world.consumer("a", generation + 1).assigned is None
    assert world.beat(first, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    _, joined = world.join(first, owned={"t": kept})
    assert joined.generation == generation + 1
    assert partitions_of(world.sync(first, generation + 1)) == kept
    assert world.consumer("a", generation + 1).assigned is not None


def test_those_who_wait_in_a_classic_group_are_sent_to_join_again() -> None:
    world = World()
    (first,) = world.classic_group(range(6))
    token, pending = world.join()
    assert pending is None
    world.consumer("a", 0)
    assert world.replies[token].error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.join(first)[1].error is ErrorCode.NONE


def test_the_last_consumer_leaves_a_classic_group_behind() -> None:
    world = World()
    (first,) = world.classic_group(range(6))
    generation = world.group.generation
    world.consumer("a", 0)
    world.beat(first, generation)
    world.join(first)
    world.sync(first, generation + 1)
    world.consumer("a", -1)
    assert isinstance(world.group, ClassicGroup)
    assert world.group.state is GroupState.PREPARING_REBALANCE
    assert world.group.generation == generation + 1
    assert world.beat(first, generation + 1) is ErrorCode.REBALANCE_IN_PROGRESS
    _, joined = world.join(first)
    assert (joined.generation, joined.leader) == (generation + 2, first)
    shares = [(first, Assignment(partitions={"t": range(6)}).encode())]
    assert len(partitions_of(world.sync(first, generation + 2, shares))) == 6
    assert world.group.state is GroupState.STABLE


def test_a_static_member_that_speaks_classic_again_leaves_a_stable_group() -> None:
    world = World()
    world.consumer("a", 0, instance_id="i")
    _, joined = world.join(instance_id="i")
    assert (joined.error, joined.generation) == (ErrorCode.NONE, 2)
    assert isinstance(world.group, ClassicGroup)
    assert world.group.state is GroupState.STABLE
    assert partitions_of(world.sync(joined.member_id, 2, instance_id="i")) == list(range(6))


def test_a_static_member_moves_up_and_keeps_what_it_has() -> None:
    world = World()
    _, joined = world.join(instance_id="i")
    shares = [(joined.member_id, Assignment(partitions={"t": range(6)}).encode())]
    world.sync(joined.member_id, 1, shares, instance_id="i")
    up = world.consumer("a", 0, instance_id="i")
    assert up.error is ErrorCode.NONE
    assert up.assigned is not None
    assert by_name(world.topics, up.assigned) == {"t": list(range(6))}
    assert world.beat(joined.member_id, 1, "i") is ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize("policy", [MigrationPolicy.DOWNGRADE, MigrationPolicy.DISABLED])
def test_an_upgrade_can_be_forbidden(policy: MigrationPolicy) -> None:
    world = World(policy)
    world.classic_group(range(6))
    assert world.consumer("a", 0).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(world.group, ClassicGroup)


def test_a_downgrade_can_be_forbidden() -> None:
    world = World(MigrationPolicy.UPGRADE)
    (first,) = world.classic_group(range(6))
    generation = world.group.generation
    world.consumer("a", 0)
    world.beat(first, generation)
    world.join(first)
    world.sync(first, generation + 1)
    world.consumer("a", -1)
    assert isinstance(world.group, ConsumerGroup)
    assert list(world.group.members) == [first]
    assert world.beat(first, generation + 1) is ErrorCode.REBALANCE_IN_PROGRESS, "as on Kafka: nobody else is left"
    world.join(first)
    assert partitions_of(world.sync(first, world.group.generation)) == list(range(6))
    assert world.beat(first, world.group.generation) is ErrorCode.NONE


def test_classic_members_can_be_kept_out() -> None:
    world = World(MigrationPolicy.DISABLED)
    world.consumer("a", 0)
    assert world.join()[1].error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_only_groups_of_consumers_are_upgraded() -> None:
    world = World()
    world.join(protocol_type="connect")
    assert world.consumer("a", 0).error is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_with_a_member_that_does_not_offer_what_was_chosen_last_is_not_upgraded() -> None:
    world = World()
    world.classic_group(range(6))
    other = [Protocol("range", b"?"), Protocol("other", b"?")]
    leader = world.group.members[world.group.leader]
    world.group._offered.remove(leader.protocols)
    leader.protocols = [*leader.protocols, other[1]]
    world.group._offered.add(leader.protocols)
    token, pending = world.join(protocols=[other[1]])
    assert pending is None
    assert world.consumer("a", 0).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.replies[token].error is ErrorCode.REBALANCE_IN_PROGRESS
    assert isinstance(world.group, ClassicGroup)


def test_user_data_of_an_assignor_is_not_thrown_away() -> None:
    world = World()
    _, joined = world.join()
    world.sync(joined.member_id, 1, [(joined.member_id, Assignment(user_data=b"mine").encode())])
    assert world.consumer("a", 0).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(world.group, ClassicGroup)


class TestClassicMembers:
    """What a classic member is answered in a consumer group."""

    def mixed(self) -> tuple[World, str, int]:
        world = World()
        world.consumer("a", 0)
        _, joined = world.join()
        assert isinstance(joined, JoinReply)
        return world, joined.member_id, joined.generation

    def test_it_joins_a_consumer_group(self) -> None:
        world, member, generation = self.mixed()
        assert generation == 3
        assert partitions_of(world.sync(member, 3)) == []
        assert world.beat(member, 3) is ErrorCode.NONE, "its partitions are not free yet"
        told = world.consumer("a", 2)
        assert told.assigned is not None
        world.consumer("a", 2, owned=told.assigned)
        assert world.beat(member, 3) is ErrorCode.REBALANCE_IN_PROGRESS
        world.join(member)
        assert len(partitions_of(world.sync(member, 3))) == 3

    def test_it_is_told_to_come_back_with_an_id(self) -> None:
        world = World()
        world.consumer("a", 0)
        _, told = world.join(requires_member_id=True)
        assert told.error is ErrorCode.MEMBER_ID_REQUIRED
        _, joined = world.join(told.member_id, requires_member_id=True)
        assert (joined.error, joined.member_id) == (ErrorCode.NONE, told.member_id)

    def test_its_errors_are_those_of_a_classic_group(self) -> None:
        world, member, _ = self.mixed()
        assert world.beat(member, 2) is ErrorCode.ILLEGAL_GENERATION
        assert world.beat("x", 3) is ErrorCode.UNKNOWN_MEMBER_ID
        assert world.beat("a", 2) is ErrorCode.UNKNOWN_MEMBER_ID, "that one does not speak the classic protocol"
        assert world.beat(member, 3, "i") is ErrorCode.UNKNOWN_MEMBER_ID
        assert world.sync(member, 2).error is ErrorCode.ILLEGAL_GENERATION
        assert world.sync(member, 3, protocol_name="other").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert world.join(protocols=[Protocol("other", b"")])[1].error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert world.join(protocol_type="connect")[1].error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert world.join(protocols=[Protocol("range", b"?")])[1].error is ErrorCode.UNKNOWN_SERVER_ERROR
        assert world.join("x", instance_id="i")[1].error is ErrorCode.UNKNOWN_MEMBER_ID
        who = Committer(member_id=member, generation=2, knows_epochs=False)
        stale = commit(world.groups, "g", who, {P0: CommittedOffset(1, 0, "")})
        assert stale is ErrorCode.ILLEGAL_GENERATION

    def test_its_group_instance_id_is_of_its_member_id_alone(self) -> None:
        world, _, _ = self.mixed()
        _, joined = world.join(instance_id="i")
        assert world.join(joined.member_id, instance_id="i")[1].error is ErrorCode.NONE
        assert world.join("x", instance_id="i")[1].error is ErrorCode.FENCED_INSTANCE_ID

    def test_who_takes_its_instance_over_gives_up_first_what_another_is_to_have(self) -> None:
        world = World()
        _, joined = world.join(instance_id="i")
        has_all = Assignment(partitions={"t": range(6)}).encode()
        world.sync(joined.member_id, 1, [(joined.member_id, has_all)], instance_id="i")
        world.consumer("a", 0)
        _, again = world.join(instance_id="i", owned={"t": range(6)})
        assert len(partitions_of(world.sync(again.member_id, again.generation, instance_id="i"))) == 3
        assert not world.consumer("a", 2).assigned
        world.join(again.member_id, instance_id="i", owned={"t": range(3)})
        assert world.consumer("a", 2).assigned

    def test_it_leaves(self) -> None:
        world, member, _ = self.mixed()
        left = world.ask(Leave(token=next(world.tokens), leavers=[Leaver(member, None)]))
        assert [each.error for each in left.leavers] == [ErrorCode.NONE]
        assert list(world.group.members) == ["a"]

    @pytest.mark.parametrize("late_with", ["session", "sync", "join"])
    def test_it_is_put_out_when_it_is_late(self, late_with: str) -> None:
        world, member, _ = self.mixed()
        if late_with != "sync":
            world.sync(member, 3)
        if late_with == "join":
            world.consumer("b", 0)
            assert world.beat(member, 3) is ErrorCode.REBALANCE_IN_PROGRESS
        allowed = 10_000 if late_with == "session" else 5000
        world.expire(allowed - 1)
        assert member in world.group.members
        world.expire(1)
        assert member not in world.group.members


def test_a_restart_keeps_a_mixed_group() -> None:
    world = World()
    (first,) = world.classic_group(range(6))
    generation = world.group.generation
    commit(world.groups, "g", Committer(member_id=first, generation=generation), {P0: CommittedOffset(5, 0, "")})
    world.consumer("a", 0)
    before = world.held()
    world.groups = Groups(
        world.limits, world.consumer_limits, world.topics, records=world.groups.journal, now_ms=world.now_ms
    )
    assert isinstance(world.group, ConsumerGroup)
    assert world.held() == before
    assert world.groups.offsets.of("g")[P0].offset == 5
    world.consumer("a", -1)
    world.groups = Groups(
        world.limits, world.consumer_limits, world.topics, records=world.groups.journal, now_ms=world.now_ms
    )
    assert isinstance(world.group, ClassicGroup)
    assert list(world.group.members) == [first]
