"""A streams group: who has which task, what its members are told, and what a replay of its records gives."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from seeds import random_walk
from streams_groups import (
    COUNTING,
    REBALANCE_MS,
    SESSION_MS,
    Client,
    Driver,
    part,
    tasks,
    topology,
)

from loadwise.coordinator.groups.events import Committer, Delete, ExpireSession, ForceRebalance, Tick
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.streams.group import StreamsGroup
from loadwise.coordinator.streams.records import StreamsGroupRecord
from loadwise.coordinator.streams.state import StreamsGroupState
from loadwise.coordinator.streams.topology import NO_TASKS, Endpoint, StatusCode, Tasks
from loadwise.protocol.error_codes import ErrorCode

JUST_READING = topology(part("0", "t"))


def test_a_group_gets_tasks_when_its_topics_are_there() -> None:
    driver = Driver()
    client = Client("a", "p")
    reply = driver.join(client)
    assert [each.code for each in reply.statuses] == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert [(each.name, each.partitions) for each in reply.missing_topics] == [("c", 4)]
    assert (reply.epoch, reply.assigned, driver.group.state) == (2, NO_TASKS, StreamsGroupState.NOT_READY)
    reply = driver.beat_as(client)
    assert (reply.epoch, reply.statuses, driver.group.state) == (3, [], StreamsGroupState.STABLE)
    assert client.owned.active == tasks("0", 0, 1, 2, 3) | tasks("1", 0, 1, 2, 3)
    assert driver.group.assignment("a") == {"t": [0, 1, 2, 3]}
    driver.topics.delete("t")
    reply = driver.beat_as(client)
    assert [each.code for each in reply.statuses] == [StatusCode.MISSING_SOURCE_TOPICS]
    assert driver.group.state is StreamsGroupState.NOT_READY


def test_a_task_is_given_up_before_another_member_has_it() -> None:
    driver = Driver()
    first, second = Client("a", "p"), Client("b", "q")
    driver.join(first, JUST_READING)
    driver.join(second, JUST_READING)
    assert (first.owned.active, second.owned.active) == (tasks("0", 0, 1, 2, 3), frozenset())
    before = driver.beat_as(first)
    assert before.assigned == Tasks(active=tasks("0", 0, 1)), "it is told what it may keep"
    driver.beat_as(first, reports=False)
    assert driver.beat_as(second).assigned is None, "the first has not reported yet that it gave them up"
    driver.beat_as(first)
    driver.beat_as(second)
    assert second.owned.active == tasks("0", 2, 3)
    assert driver.group.state is StreamsGroupState.STABLE


def test_who_does_not_give_up_its_tasks_is_removed() -> None:
    driver = Driver(session_timeout_ms=10 * REBALANCE_MS)
    first, second = Client("a", "p"), Client("b", "q")
    driver.join(first, JUST_READING)
    driver.join(second, JUST_READING)
    driver.beat_as(first)
    driver.now_ms += REBALANCE_MS
    driver.handle(Tick())
    assert list(driver.group.members) == ["b"]
    driver.settle(second)
    assert second.owned.active == tasks("0", 0, 1, 2, 3)


def test_standbys_are_in_other_processes() -> None:
    driver = Driver(num_standby_replicas=1)
    clients = [Client("a", "p"), Client("b", "p"), Client("c", "q")]
    for client in clients:
        driver.join(client)
    driver.settle(*clients)
    standbys = [client.owned.standby for client in clients]
    assert frozenset().union(*standbys) == tasks("0", 0, 1, 2, 3), "those without state have none"
    here = clients[0].owned.active | clients[1].owned.active
    assert not here & (standbys[0] | standbys[1])


def test_an_application_has_one_topology() -> None:
    driver = Driver()
    driver.join(Client("a", "p"), topology(part("0", "t"), epoch=3))
    for epoch in (3, 4):
        refused = driver.join(Client("b", "q"), topology(part("0", "u"), epoch=epoch))
        assert (refused.error, refused.message) == (
            ErrorCode.INVALID_REQUEST,
            "Topology updates are not supported yet.",
        )
    stale = driver.join(Client("b", "q"), topology(part("0", "u"), epoch=2))
    assert (stale.error, [each.code for each in stale.statuses]) == (ErrorCode.NONE, [StatusCode.STALE_TOPOLOGY])


def test_one_member_stops_all_until_nobody_is_left() -> None:
    driver = Driver()
    first, second = Client("a", "p"), Client("b", "q")
    driver.join(first, JUST_READING)
    driver.join(second, JUST_READING)
    driver.beat("b", second.epoch, shuts_down=True)
    assert [each.code for each in driver.beat_as(first).statuses] == [StatusCode.SHUTDOWN_APPLICATION]
    driver.beat("a", -1)
    driver.beat("b", -1)
    driver.join(first, JUST_READING)
    assert driver.beat_as(first).statuses == []


def test_members_are_told_of_endpoints_when_they_change() -> None:
    driver = Driver()
    first = Client("a", "p", endpoint=Endpoint("h", 1))
    driver.join(first, JUST_READING)
    reply = driver.beat("a", first.epoch, endpoint_epoch=-1)
    ((endpoint, active, standby),) = reply.endpoints or ()
    assert (endpoint, active, standby) == (Endpoint("h", 1), [("t", [0, 1, 2, 3])], [])
    assert driver.beat("a", first.epoch, endpoint_epoch=reply.endpoint_epoch).endpoints is None


def test_a_new_group_waits_for_more_members() -> None:
    driver = Driver(initial_rebalance_delay_ms=100)
    first, second = Client("a", "p"), Client("b", "q")
    reply = driver.join(first, JUST_READING)
    assert ([each.code for each in reply.statuses], reply.epoch) == ([StatusCode.ASSIGNMENT_DELAYED], 1)
    driver.join(second, JUST_READING)
    assert driver.group.next_deadline_ms == 100
    driver.now_ms = 100
    driver.handle(Tick())
    driver.beat_as(first)
    driver.beat_as(second)
    assert (first.owned.active, second.owned.active) == (tasks("0", 0, 2), tasks("0", 1, 3))


def test_a_clock_that_was_ahead_before_a_restart_holds_up_no_assignment() -> None:
    driver = Driver()
    driver.now_ms = 86_400_000
    first, second = Client("a", "p"), Client("b", "q")
    driver.join(first, JUST_READING)
    driver.now_ms = 0
    driver.group = StreamsGroup.replay("g", list(driver.group.records()), driver.topics, 0, driver.limits)
    reply = driver.join(second, JUST_READING)
    assert [each.code for each in reply.statuses] == []
    driver.settle(first, second)
    assert second.owned.active == tasks("0", 2, 3)


def test_members_of_a_large_group_that_join_together_share_an_assignment() -> None:
    driver = Driver()
    clients = [Client(str(number), str(number)) for number in range(102)]
    for client in clients[:101]:
        driver.join(client, JUST_READING)
    reply = driver.join(clients[101], JUST_READING)
    assert [each.code for each in reply.statuses] == [StatusCode.ASSIGNMENT_DELAYED]
    driver.now_ms += 102 // 4
    driver.settle(*clients)
    assert driver.group.state is StreamsGroupState.STABLE
    assert driver.group.hard_state.target.tasks.keys() == {client.member_id for client in clients}


def test_who_may_commit() -> None:
    driver = Driver()
    group, partition = driver.group, [Partition("t", 0)]
    assert group.validate_offset_commit(Committer(), partition) is ErrorCode.NONE
    first, second = Client("a", "p"), Client("b", "q")
    driver.join(first, JUST_READING)
    driver.join(second, JUST_READING)
    driver.settle(first, second)

    def commits(generation: int, number: int = 0, topic: str = "t") -> ErrorCode:
        return group.validate_offset_commit(Committer(member_id="a", generation=generation), [Partition(topic, number)])

    assert group.validate_offset_commit(Committer(), partition) is ErrorCode.UNKNOWN_MEMBER_ID
    assert first.epoch == 3
    assert [commits(epoch) for epoch in (3, 2, 1, 4)] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    ]
    assert commits(2, number=3) is ErrorCode.STALE_MEMBER_EPOCH, "it is the other's by now"
    assert commits(2, topic="u") is ErrorCode.STALE_MEMBER_EPOCH
    old = Committer(member_id="a", generation=3, knows_epochs=False)
    assert group.validate_offset_commit(old, partition) is ErrorCode.UNSUPPORTED_VERSION


def test_a_group_is_deleted_when_nobody_is_in_it() -> None:
    driver = Driver()
    driver.join(Client("a", "p"), JUST_READING)
    assert driver.handle(Delete(token=1)).error is ErrorCode.NON_EMPTY_GROUP
    driver.beat("a", -1)
    assert driver.group.state is StreamsGroupState.EMPTY
    assert driver.handle(Delete(token=1)).error is ErrorCode.NONE
    assert len(driver.journal) == 0


IDS = {"a": "p", "b": "p", "c": "q", "d": "r", "e": "s"}


class StreamsGroupWalk(RuleBasedStateMachine):
    """Members and topics come and go at random; members report what they have or do not."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(num_standby_replicas=1)
        self.clients: dict[str, Client] = {}
        self.epoch = 0

    @rule(member=st.sampled_from(sorted(IDS)))
    def join(self, member: str) -> None:
        client = self.clients.setdefault(member, Client(member, IDS[member]))
        assert self.driver.join(client).error is ErrorCode.NONE

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        client = self.clients[data.draw(st.sampled_from(sorted(self.clients)))]
        known = client.member_id in self.driver.group.members
        error = self.driver.beat_as(client).error
        # A topic that has come again with fewer partitions leaves members with tasks that are none any more.
        assert error in ({ErrorCode.NONE, ErrorCode.INVALID_REQUEST} if known else {ErrorCode.UNKNOWN_MEMBER_ID})
        if error is not ErrorCode.NONE:
            del self.clients[client.member_id]

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def an_answer_is_lost(self, data: st.DataObject) -> None:
        client = self.clients[data.draw(st.sampled_from(sorted(self.clients)))]
        self.driver.beat(client.member_id, client.epoch)
        client.to_report = client.owned
        if self.driver.beat_as(client).error is not ErrorCode.NONE:
            del self.clients[client.member_id]

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def beat_without_a_report(self, data: st.DataObject) -> None:
        client = self.clients[data.draw(st.sampled_from(sorted(self.clients)))]
        if self.driver.beat_as(client, reports=False).error is not ErrorCode.NONE:
            del self.clients[client.member_id]

    @rule()
    def everybody_beats(self) -> None:
        for client in [each for each in self.clients.values() if each.member_id in self.driver.group.members]:
            self.driver.beat_as(client)

    @rule(member=st.sampled_from(sorted(IDS)))
    def leave(self, member: str) -> None:
        self.driver.beat(member, -1)
        self.clients.pop(member, None)

    @rule(member=st.sampled_from(sorted(IDS)))
    def expire(self, member: str) -> None:
        self.driver.handle(ExpireSession(member_id=member))

    @rule()
    def rebalance(self) -> None:
        self.driver.handle(ForceRebalance())

    @rule(name=st.sampled_from("tc"), partitions=st.integers(0, 5))
    def change(self, name: str, partitions: int) -> None:
        if self.driver.topics.get(name) is not None:
            self.driver.topics.delete(name)
        if partitions:
            self.driver.topics.set(name, partitions)

    @rule(standbys=st.integers(0, 2))
    def configure(self, standbys: int) -> None:
        self.driver.group.limits = self.driver.limits.of_group({"streams.num.standby.replicas": str(standbys)})

    @rule(ms=st.integers(1, SESSION_MS))
    def wait(self, ms: int) -> None:
        self.driver.now_ms += ms
        self.driver.handle(Tick())

    @invariant()
    def a_task_has_one_active_owner(self) -> None:
        members = self.driver.group.members.values()
        held = [task for member in members for task in member.held().active]
        assert len(held) == len(set(held))
        there = [client for client in self.clients.values() if client.member_id in self.driver.group.members]
        at_work = [task for client in there for task in client.running]
        assert len(at_work) == len(set(at_work))

    @invariant()
    def a_process_has_a_task_once(self) -> None:
        by_process: dict[str, list[object]] = {}
        for member in self.driver.group.members.values():
            for role in member.held():
                by_process.setdefault(member.metadata.process_id, []).extend(role)
        assert all(len(has) == len(set(has)) for has in by_process.values())

    @invariant()
    def epochs_rise(self) -> None:
        group = self.driver.group
        assert group.generation >= self.epoch
        assert group.generation >= group.hard_state.target.epoch
        assert group.hard_state.target.tasks.keys() <= group.members.keys()
        assert all(member.current.epoch <= group.hard_state.target.epoch for member in group.members.values())
        self.epoch = group.generation

    @invariant()
    def a_replay_gives_the_same_group(self) -> None:
        group = self.driver.group
        records = [record for record in self.driver.journal if isinstance(record, StreamsGroupRecord)]
        again = StreamsGroup.replay("g", records, self.driver.topics, self.driver.now_ms, self.driver.limits)
        assert again.members == group.members
        assert (again.generation, again.state) == (group.generation, group.state)
        assert again.hard_state.target == group.hard_state.target
        assert sorted(map(str, again.records())) == sorted(map(str, group.records()))

    @invariant()
    def time_ends_every_session(self) -> None:
        group = self.driver.group
        assert (group.next_deadline_ms is not None) == bool(group.members)
        if group.next_deadline_ms is not None:
            assert group.next_deadline_ms <= self.driver.now_ms + SESSION_MS

    def teardown(self) -> None:
        """In quiet, everybody gets what it should have."""
        for name in ("t", "c"):
            self.driver.topics.set(name, 3)
        clients = [Client(member, IDS[member]) for member in self.driver.group.members]
        for client in clients:
            self.driver.join(client)
        self.driver.settle(*clients)
        if clients:
            assert self.driver.group.state is StreamsGroupState.STABLE
            active = [task for client in clients for task in client.owned.active]
            assert sorted(active) == sorted(tasks("0", 0, 1, 2) | tasks("1", 0, 1, 2))


TestStreamsGroup = random_walk(StreamsGroupWalk, walks=30, steps=25)


def test_the_topology_of_these_tests_is_sound() -> None:
    assert COUNTING.is_sound()
    assert not topology(part("0", "t"), part("0", "u")).is_sound()
    assert not topology(part("0", "t", together=(1,))).is_sound()
