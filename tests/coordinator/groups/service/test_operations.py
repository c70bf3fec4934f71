"""A group that is acted on from outside, with its view and its history, under a clock that stands still."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest
from commits import commit
from peers import Peer, join
from record_batches import batch

from loadwise.coordinator import Coordinator, NoSuchGroupError, NoSuchMemberError, NotRunningError
from loadwise.coordinator.groups.effects import Transition
from loadwise.coordinator.groups.events import Committer
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.service.history import History
from loadwise.protocol.consumer import Assignment


class Member:
    """A member of group ``g`` that owns all of topic ``t``."""

    def __init__(self, coordinator: Coordinator, peer: Peer) -> None:
        self.coordinator = coordinator
        self.peer = peer
        self.member_id = ""

    async def join(self) -> None:
        joined = await self.peer.exchange(join("g", session_timeout_ms=10_000))
        self.member_id = joined.member_id
        assignment = Assignment(partitions={"t": [0, 1]}).encode()
        answer = await self.peer.ask(
            "SyncGroup",
            1,
            group_id="g",
            generation_id=joined.generation_id,
            member_id=self.member_id,
            assignments=[{"member_id": self.member_id, "assignment": assignment}],
        )
        assert answer.error_code == 0

    async def beat(self) -> int:
        generation = self.coordinator.groups.get("g").generation
        answer = await self.peer.ask("Heartbeat", 1, group_id="g", generation_id=generation, member_id=self.member_id)
        return int(answer.error_code)


@pytest.fixture
async def member() -> AsyncIterator[Member]:
    async with Coordinator(topics={"t": 2}) as coordinator:
        coordinator.clock.freeze()
        peer = await Peer.connect(coordinator)
        member = Member(coordinator, peer)
        await member.join()
        yield member
        await peer.close()


def states(coordinator: Coordinator) -> list[tuple[str, str]]:
    return [(moment.after, moment.reason) for moment in coordinator.groups.get("g").history]


async def test_a_kicked_member_is_unknown_from_then_on(member: Member) -> None:
    member.coordinator.groups.kick("g", member.member_id)
    assert await member.beat() == 25
    group = member.coordinator.groups.get("g")
    assert (group.state, group.members) == ("Empty", [])
    assert (f"{member.member_id} left") in states(member.coordinator)[-2]


async def test_a_session_that_is_ended_is_logged_as_expired(member: Member) -> None:
    member.coordinator.groups.expire_session("g", member.member_id)
    assert await member.beat() == 25
    assert states(member.coordinator)[-2:] == [
        ("PreparingRebalance", f"the session of {member.member_id} expired"),
        ("Empty", "all members have left"),
    ]


async def test_a_forced_rebalance_asks_everybody_to_join_again(member: Member) -> None:
    member.coordinator.groups.rebalance("g")
    assert await member.beat() == 27
    assert states(member.coordinator)[-1] == ("PreparingRebalance", "forced by a test")
    member.coordinator.groups.rebalance("g")
    assert states(member.coordinator)[-1] == ("PreparingRebalance", "forced by a test")


async def test_who_is_not_there_is_named_with_those_who_are(member: Member) -> None:
    groups = member.coordinator.groups
    with pytest.raises(NoSuchGroupError, match="no group 'h'; existing ones: g"):
        groups.rebalance("h")
    with pytest.raises(NoSuchGroupError):
        groups.get("h")
    with pytest.raises(NoSuchMemberError, match=f"no member 'x'; its members: {member.member_id}"):
        groups.kick("g", "x")
    with pytest.raises(NoSuchMemberError):
        groups.expire_session("g", "x")


async def test_the_view_shows_members_lag_and_how_the_group_came_there(member: Member) -> None:
    cluster = member.coordinator.cluster
    log = cluster.topics.log("t", 0)
    assert log is not None
    log.append(batch([b"a", b"b", b"c"]))
    who = Committer(member_id=member.member_id, generation=1)
    commit(cluster.groups, "g", who, {Partition("t", 0): CommittedOffset(1, 0, "")})
    (group,) = member.coordinator.groups.all()
    assert (group.group_id, group.type, group.state, group.generation, group.protocol, group.leader, group.lag) == (
        "g", "classic", "Stable", 1, "range", member.member_id, 2,
    )  # fmt: skip
    (shown,) = group.members
    assert (shown.member_id, shown.client_id, shown.client_host, shown.assignment) == (
        member.member_id, "peer", "/127.0.0.1", {"t": [0, 1]},
    )  # fmt: skip
    assert [(each.partition, each.member_id, each.committed, each.end, each.lag) for each in group.partitions] == [
        (0, member.member_id, 1, 3, 2),
        (1, member.member_id, None, 0, None),
    ]
    assert [(moment.before, moment.after, moment.generation, moment.members) for moment in group.history] == [
        ("Empty", "PreparingRebalance", 0, 1),
        ("PreparingRebalance", "CompletingRebalance", 1, 1),
        ("CompletingRebalance", "Stable", 1, 1),
    ]


async def test_every_transition_is_one_record_of_the_log_with_fields(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "loadwise.coordinator.groups")
    async with Coordinator(topics={"t": 2}) as coordinator:
        peer = await Peer.connect(coordinator)
        member = Member(coordinator, peer)
        await member.join()
        coordinator.groups.kick("g", member.member_id)
        records = [record for record in caplog.records if record.name == "loadwise.coordinator.groups"]
        history = coordinator.groups.get("g").history
        await peer.close()
    assert len(history) == 5
    for record, moment in zip(records, history, strict=True):
        fields = vars(record)
        assert {name: fields[name] for name in ("group_id", "at_ms", "before", "after", "generation", "members")} == {
            "group_id": "g",
            "at_ms": moment.at_ms,
            "before": moment.before,
            "after": moment.after,
            "generation": moment.generation,
            "members": moment.members,
        }
        assert record.getMessage() == f"g: {moment.before} -> {moment.after}: {moment.reason}"


def test_only_a_coordinator_that_runs_can_be_acted_on() -> None:
    stopped = Coordinator()
    for act in (stopped.groups.all, stopped.clock.freeze, lambda: stopped.groups.kick("g", "m")):
        with pytest.raises(NotRunningError):
            act()
    threaded = stopped.in_thread()
    for act in (threaded.groups.all, threaded.clock.freeze):
        with pytest.raises(NotRunningError):
            act()


def test_history_is_bounded() -> None:
    history = History(max_groups=2, max_moments=3)
    for number in range(10):
        for group_id in ("a", "b"):
            history.add(group_id, _transition(number), number)
    assert [moment.transition.generation for moment in history.of("a")] == [7, 8, 9]
    history.add("a", _transition(10), 10)
    history.add("c", _transition(0), 11)
    assert (history.of("b"), len(history.of("a")), len(history.of("c"))) == ((), 3, 1)
    assert len(history.take_unlogged()) == 2, "what nobody takes is bounded too"
    assert history.take_unlogged() == ()


def _transition(generation: int) -> Transition:
    return Transition(before="Stable", after="Stable", generation=generation, members=1, reason="")
