"""Offsets and groups that nobody uses lapse, as in Kafka (KIP-211); under a fake clock."""

from __future__ import annotations

from typing import Any

import pytest
from classic_events import join_event, sync_event
from commits import commit
from consumer_groups import FakeTopics

from loadwise.coordinator.groups.events import (
    CommitOffsets,
    Committer,
    ConsumerHeartbeat,
    Event,
    Leave,
    Leaver,
    Protocol,
)
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.protocol.consumer import Subscription
from loadwise.protocol.error_codes import ErrorCode

MINUTE_MS = 60_000
LIMITS = GroupLimits(offsets_retention_minutes=10, offsets_retention_check_interval_ms=MINUTE_MS)
T0, U0 = Partition("t", 0), Partition("u", 0)


class World:
    """Groups, and a clock that stops at every deadline."""

    def __init__(self) -> None:
        self.groups = Groups(LIMITS, topics=FakeTopics(t=1, u=1))
        self.now_ms = 0

    def pass_minutes(self, minutes: float, *, beating: Event | None = None) -> None:
        end = self.now_ms + int(minutes * MINUTE_MS)
        while (deadline := self.groups.next_deadline_ms) is not None and deadline <= end:
            self.now_ms = deadline
            if beating is not None:
                self.groups.handle("g", beating, self.now_ms)
            self.groups.expire(self.now_ms)
        self.now_ms = end

    def ask(self, event: Event) -> Any:
        (reply,) = self.groups.handle("g", event, self.now_ms)
        return reply.body

    def commit(self, *partitions: Partition, who: Committer | None = None, expires_ms: int | None = None) -> None:
        offsets = {each: CommittedOffset(1, -1, "", self.now_ms, expires_ms) for each in partitions}
        assert commit(self.groups, "g", who or Committer(), offsets, self.now_ms) is ErrorCode.NONE

    @property
    def committed(self) -> set[Partition]:
        return set(self.groups.offsets.of("g"))

    def stable_member(self) -> Committer:
        """One consumer of topic t, whose session lasts for a long time."""
        protocols = [Protocol("range", Subscription(topics=["t"]).encode())]
        timeouts = {"session_timeout_ms": LIMITS.max_session_timeout_ms, "rebalance_timeout_ms": 1000}
        joined = self.ask(join_event(1, fresh_member_id="m", protocols=protocols, **timeouts))
        self.ask(sync_event(2, "m", joined.generation, [("m", b"")]))
        return Committer(member_id="m", generation=joined.generation)


def test_offsets_of_a_group_that_was_never_joined_count_from_their_commit_and_the_group_goes_with_the_last() -> None:
    world = World()
    world.commit(T0)
    world.pass_minutes(5)
    world.commit(U0)
    world.pass_minutes(6)
    assert world.committed == {U0}
    world.pass_minutes(5)
    assert world.groups.get("g") is None
    assert list(world.groups.journal) == []
    assert world.groups.next_deadline_ms is None


def test_offsets_of_consumers_count_from_when_the_last_one_left() -> None:
    world = World()
    who = world.stable_member()
    world.commit(T0, who=who)
    world.pass_minutes(20)
    assert world.committed == {T0}
    world.ask(Leave(token=3, leavers=[Leaver("m", None)]))
    world.pass_minutes(9)
    assert world.committed == {T0}
    replayed = Groups(LIMITS, records=world.groups.journal, now_ms=world.now_ms)
    world.pass_minutes(2)
    assert world.groups.get("g") is None
    world.groups = replayed
    world.pass_minutes(2)
    assert world.groups.get("g") is None, "a restart does not let the retention begin again"


def test_a_stable_group_loses_only_what_nobody_reads() -> None:
    world = World()
    who = world.stable_member()
    world.commit(T0, U0, who=who)
    world.pass_minutes(12)
    assert world.committed == {T0}


def test_offsets_of_a_consumer_group_count_from_their_commit_while_nobody_reads_the_topic() -> None:
    world = World()
    world.commit(T0, U0)
    beat = ConsumerHeartbeat(token=1, member_id="m", epoch=0, topics=["t"], rebalance_timeout_ms=1000, owned={})
    world.ask(beat)
    world.pass_minutes(12, beating=beat)
    assert world.committed == {T0}
    world.ask(ConsumerHeartbeat(token=2, member_id="m", epoch=-1))
    world.pass_minutes(1.5)
    assert world.groups.get("g") is None


def test_a_client_may_set_the_time_itself() -> None:
    world = World()
    world.commit(T0, expires_ms=2 * MINUTE_MS)
    world.commit(U0)
    world.pass_minutes(3)
    assert world.committed == {U0}


def test_a_group_without_offsets_and_members_goes_at_the_next_look() -> None:
    world = World()
    world.stable_member()
    world.ask(Leave(token=3, leavers=[Leaver("m", None)]))
    assert world.groups.get("g") is not None
    world.pass_minutes(1.5)
    assert world.groups.get("g") is None


def test_commits_keep_a_session_alive() -> None:
    world = World()
    who = world.stable_member()
    alive = CommitOffsets(token=9, who=who, offsets={T0: CommittedOffset(1, -1, "")})
    world.pass_minutes(90, beating=alive)
    assert world.groups.get("g") is not None
    assert world.ask(alive).error is ErrorCode.NONE


def test_a_look_for_lapsed_offsets_reads_each_subscription_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for each offset: thousands of both would keep everybody waiting every ten minutes."""
    world = World()
    who = world.stable_member()
    world.commit(*(Partition("u", number) for number in range(50)), T0, who=who)
    read: list[bytes] = []
    decode = Subscription.decode
    monkeypatch.setattr(Subscription, "decode", lambda data: read.append(data) or decode(data))
    world.groups.expire(world.now_ms)
    read.clear()
    world.now_ms += MINUTE_MS
    world.groups.expire(world.now_ms)
    assert len(read) == 1
