"""A share group: who is in it, what it reads, and what a replay of its records gives."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from consumer_groups import FakeTopics, by_name
from heartbeat_groups import HeartbeatDriver
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from seeds import random_walk

from loadwise.coordinator.groups.consumer_records import Tombstone
from loadwise.coordinator.groups.events import Delete, ExpireSession, Tick
from loadwise.coordinator.share.group import ShareGroup
from loadwise.coordinator.share.heartbeat import ShareHeartbeat, ShareHeartbeatReply
from loadwise.coordinator.share.limits import ShareGroupLimits
from loadwise.coordinator.share.records import ShareRecord, ShareState, ShareTopic
from loadwise.coordinator.share.state import ShareGroupState
from loadwise.protocol.error_codes import ErrorCode

SESSION_MS = 1000


class Driver(HeartbeatDriver[ShareGroup]):
    """A share group and its topics."""

    def __init__(self, **limits: Any) -> None:
        self.topics = FakeTopics(t=4)
        self.limits = ShareGroupLimits(**{"session_timeout_ms": SESSION_MS} | limits)
        super().__init__(ShareGroup("g", self.topics, self.limits))

    def beat(self, member: str, epoch: int, *topics: str) -> ShareHeartbeatReply:
        reply = self.handle(
            ShareHeartbeat(token=next(self.tokens), member_id=member, epoch=epoch, topics=topics or None)
        )
        assert isinstance(reply, ShareHeartbeatReply)
        return reply

    def given(self, reply: ShareHeartbeatReply) -> dict[str, list[int]] | None:
        return None if reply.assigned is None else by_name(self.topics, reply.assigned)


def test_a_first_member_reads_everything() -> None:
    driver = Driver()
    assert driver.given(driver.beat("a", 0, "t")) == {"t": [0, 1, 2, 3]}
    assert driver.group.state is ShareGroupState.STABLE
    again = driver.beat("a", 3)
    assert (again.epoch, again.assigned) == (3, None), "nothing is new"
    t = driver.topics.id_of("t")
    assert driver.group.hard_state.known(t) == set(range(4)), "it has a state in each of them"
    assert len([each for each in driver.journal if isinstance(each, ShareTopic)]) == 1, "that is one record"
    assert not [each for each in driver.journal if isinstance(each, ShareState)], "nobody has got one of theirs"


def test_members_share_and_are_told_at_their_next_heartbeat() -> None:
    driver = Driver()
    driver.beat("a", 0, "t")
    second = driver.beat("b", 0, "t")
    assert (second.epoch, sum(map(len, driver.given(second).values()))) == (4, 2)  # type: ignore[union-attr]
    first = driver.beat("a", 3)
    assert (first.epoch, len(driver.given(first)["t"])) == (4, 2)  # type: ignore[index]
    assert not set(driver.given(first)["t"]) & set(driver.given(second)["t"])  # type: ignore[index]


def test_an_answer_that_was_lost_is_given_again_and_older_epochs_are_fenced() -> None:
    driver = Driver()
    driver.beat("a", 0, "t")
    driver.beat("b", 0, "t")
    driver.beat("a", 3)
    assert driver.beat("a", 3).error is ErrorCode.NONE, "it has missed the answer"
    driver.beat("c", 0, "t")
    driver.beat("a", 4)
    assert driver.beat("a", 3).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert driver.beat("a", 9).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert driver.beat("x", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_topics_that_come_and_grow_are_read() -> None:
    driver = Driver()
    driver.beat("a", 0, "t", "u")
    driver.topics.set("u", 2)
    assert driver.given(driver.beat("a", 3)) == {"t": [0, 1, 2, 3], "u": [0, 1]}
    driver.topics.set("t", 5)
    assert driver.given(driver.beat("a", 5)) == {"t": [0, 1, 2, 3, 4], "u": [0, 1]}
    driver.topics.delete("u")
    assert driver.given(driver.beat("a", 7)) == {"t": [0, 1, 2, 3, 4]}


def test_a_topic_is_known_until_the_last_state_in_it_is_deleted() -> None:
    hard_state, topic = ShareGroup("g", FakeTopics(t=4), ShareGroupLimits()).hard_state, uuid4()
    states = [ShareState(group_id="g", topic_id=topic, partition=partition) for partition in (1, 3)]
    for state in states:
        hard_state.apply(state)
    assert (hard_state.known(topic), hard_state.known_topics) == ({1, 3}, {topic})
    hard_state.apply(Tombstone(group_id="g", key=states[0].key))
    assert (hard_state.known(topic), hard_state.known_topics) == ({3}, {topic})
    hard_state.apply(Tombstone(group_id="g", key=states[1].key))
    assert (hard_state.known(topic), hard_state.known_topics) == (set(), set())


def test_a_silent_member_goes() -> None:
    driver = Driver()
    driver.beat("a", 0, "t")
    driver.now_ms = 600
    driver.beat("b", 0, "t")
    driver.now_ms = SESSION_MS
    driver.handle(Tick())
    assert list(driver.group.members) == ["b"]
    assert driver.given(driver.beat("b", 4)) == {"t": [0, 1, 2, 3]}
    assert "session" in driver.transitions[-1].reason


def test_there_is_room_for_so_many_members() -> None:
    driver = Driver(max_size=1)
    driver.beat("a", 0, "t")
    assert driver.beat("b", 0, "t").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert driver.beat("a", 0, "t").error is ErrorCode.NONE


def test_only_an_empty_group_is_deleted() -> None:
    driver = Driver()
    driver.beat("a", 0, "t")
    assert driver.handle(Delete(token=1)).error is ErrorCode.NON_EMPTY_GROUP
    driver.beat("a", -1)
    assert driver.group.state is ShareGroupState.EMPTY
    assert driver.handle(Delete(token=1)).error is ErrorCode.NONE
    assert driver.handle(Delete(token=1)).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert len(driver.journal) == 0


class ShareGroupWalk(RuleBasedStateMachine):
    """Members and topics come and go at random."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.epochs: dict[str, int] = {}

    @rule(member=st.sampled_from("abcd"), topics=st.lists(st.sampled_from("tuv"), unique=True, min_size=1))
    def join(self, member: str, topics: list[str]) -> None:
        reply = self.driver.beat(member, 0, *topics)
        assert reply.error is ErrorCode.NONE
        self.epochs[member] = reply.epoch

    @rule(member=st.sampled_from("abcd"))
    def beat(self, member: str) -> None:
        known = member in self.driver.group.members
        reply = self.driver.beat(member, self.epochs.get(member, 1))
        assert reply.error is (ErrorCode.NONE if known else ErrorCode.UNKNOWN_MEMBER_ID)
        if known:
            assert reply.epoch >= self.epochs[member]
            self.epochs[member] = reply.epoch

    @rule(member=st.sampled_from("abcd"))
    def leave(self, member: str) -> None:
        self.driver.beat(member, -1)

    @rule(member=st.sampled_from("abcd"))
    def expire(self, member: str) -> None:
        self.driver.handle(ExpireSession(member_id=member))

    @rule(name=st.sampled_from("tuv"), partitions=st.integers(1, 5))
    def change(self, name: str, partitions: int) -> None:
        self.driver.topics.set(name, partitions)

    @rule(ms=st.integers(1, SESSION_MS))
    def wait(self, ms: int) -> None:
        self.driver.now_ms += ms
        self.driver.handle(Tick())

    @invariant()
    def a_replay_gives_the_same_group(self) -> None:
        group = self.driver.group
        records = [record for record in self.driver.journal if isinstance(record, ShareRecord)]
        again = ShareGroup.replay("g", records, self.driver.topics, self.driver.now_ms, self.driver.limits)
        assert again.members == group.members
        assert (again.generation, again.state) == (group.generation, group.state)
        assert (again.hard_state.target, again.hard_state.begun) == (group.hard_state.target, group.hard_state.begun)

    @invariant()
    def time_ends_every_session(self) -> None:
        group = self.driver.group
        assert (group.next_deadline_ms is not None) == bool(group.members)
        if group.next_deadline_ms is not None:
            assert group.next_deadline_ms <= self.driver.now_ms + SESSION_MS

    @invariant()
    def members_read_only_what_they_want(self) -> None:
        for member in self.driver.group.members.values():
            epoch = self.driver.group.hard_state.target.epoch
            if member.current.epoch == epoch:
                assert set(self.driver.group.assignment(member.member_id)) <= member.metadata.topics


TestShareGroup = random_walk(ShareGroupWalk, walks=30, steps=25)
