"""The classic group under a random walk: whatever clients do, and whenever, some things always hold."""

from __future__ import annotations

import copy
from itertools import count

from classic_events import join_event, sync_event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from seeds import random_walk

from loadwise.coordinator.groups.classic.group import ClassicGroup
from loadwise.coordinator.groups.classic.states import GroupState
from loadwise.coordinator.groups.effects import Append, Effect, HeartbeatReply, JoinReply, Reply, Transition
from loadwise.coordinator.groups.events import (
    NO_MEMBER_ID,
    Delete,
    Event,
    ExpireSession,
    ForceRebalance,
    Heartbeat,
    Leave,
    Leaver,
    Protocol,
    Tick,
)
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.records import GroupRecord, GroupTombstone, Record
from loadwise.protocol.error_codes import ErrorCode

PROTOCOLS = st.lists(
    st.builds(Protocol, st.sampled_from(["range", "sticky", "weighted"]), st.sampled_from([b"a", b"b"])),
    min_size=1,
    max_size=3,
    unique_by=lambda protocol: protocol.name,
)
INSTANCES = st.sampled_from([None, None, "i1", "i2"])
SESSIONS = st.sampled_from([20, 1000, 9000])
REBALANCES = st.sampled_from([-1, 0, 20, 100, 3000])


class Walk(RuleBasedStateMachine):
    """Clients that join, sync, beat, leave and lag behind in any order; time that goes on by any steps."""

    @initialize(delay=st.sampled_from([0, 30]), max_size=st.sampled_from([2, 100]))
    def start(self, delay: int, max_size: int) -> None:
        limits = GroupLimits(initial_rebalance_delay_ms=delay, max_size=max_size, new_member_join_timeout_ms=5000)
        self.group = ClassicGroup("g", limits)
        self.now_ms = 1_000_000
        self.tokens = count(1)
        self.fresh = count(1)
        self.waiting: set[int] = set()
        self.ids: list[str] = ["never-given-out"]
        self.generation = 0
        self.told_state = GroupState.EMPTY.value
        self.kept: Record = self.group.record()

    # ---- what may happen ----

    @rule(instance=INSTANCES, protocols=PROTOCOLS, session=SESSIONS, rebalance=REBALANCES, new=st.booleans())
    def join_without_id(
        self, instance: str | None, protocols: list[Protocol], session: int, rebalance: int, new: bool
    ) -> None:
        self._join(NO_MEMBER_ID, instance, protocols, session, rebalance, new=new)

    @rule(data=st.data(), protocols=PROTOCOLS, session=SESSIONS, rebalance=REBALANCES, new=st.booleans())
    def join_with_id(
        self, data: st.DataObject, protocols: list[Protocol], session: int, rebalance: int, new: bool
    ) -> None:
        member_id = data.draw(st.sampled_from(self.ids))
        self._join(member_id, self._instance(data, member_id), protocols, session, rebalance, new=new)

    @rule(data=st.data())
    def join_again_unchanged(self, data: st.DataObject) -> None:
        member_id = data.draw(st.sampled_from(self.ids))
        member = self.group.members.get(member_id)
        if member is not None:
            self._join(member_id, member.instance_id, list(member.protocols), 1000, 3000, new=True)

    @rule(data=st.data(), lag=st.sampled_from([0, 0, 0, 1]), name=st.sampled_from([None, None, "range"]))
    def sync(self, data: st.DataObject, lag: int, name: str | None) -> None:
        member_id = data.draw(st.sampled_from(self.ids))
        who = {"instance_id": self._instance(data, member_id), "protocol_name": name}
        assignments = [(each, each.encode()) for each in self.ids[1:]]
        self._handle(sync_event(self._token(), member_id, self.group.generation - lag, assignments, **who))

    @precondition(lambda self: self.group.leader is not None)
    @rule(others=st.booleans())
    def those_who_should_sync_do(self, others: bool) -> None:
        ids = list(self.group.members) if others else [self.group.leader]
        for member_id in ids:
            member = self.group.members.get(member_id)
            if member is not None:
                who = {"instance_id": member.instance_id, "protocol_type": "consumer"}
                assignments = [(each, each.encode()) for each in self.group.members]
                name = self.group.protocol_name
                event = sync_event(
                    self._token(), member_id, self.group.generation, assignments, protocol_name=name, **who
                )
                self._handle(event)

    @precondition(lambda self: self.group.state is GroupState.PREPARING_REBALANCE)
    @rule()
    def everybody_rejoins(self) -> None:
        for member in list(self.group.members.values()):
            if member.member_id not in self.group.waiting:
                self._join(member.member_id, member.instance_id, list(member.protocols), 1000, 3000, new=True)

    @rule(data=st.data(), lag=st.sampled_from([0, 0, 1]), late=st.sampled_from([0, 0, 1000, 20_000]))
    def heartbeat(self, data: st.DataObject, lag: int, late: int) -> None:
        self.now_ms += late  # nobody has told the group yet that time went on
        member_id = data.draw(st.sampled_from(self.ids))
        generation = self.group.generation - lag
        instance = self._instance(data, member_id)
        event = Heartbeat(token=self._token(), member_id=member_id, instance_id=instance, generation=generation)
        before, short = seen(self.group), copy.deepcopy(self.group)
        is_taken = short.keep_alive(member_id, instance, generation, self.now_ms)
        effects = self._handle(event)
        if is_taken:
            assert effects == [Reply(event.token, HeartbeatReply())]
        assert seen(short) == (seen(self.group) if is_taken else before)
        well = self.group.state is GroupState.STABLE and effects == [Reply(event.token, HeartbeatReply())]
        assert is_taken or late or not well, "the short way is the usual one"

    @rule(data=st.data(), others=st.integers(0, 1))
    def leave(self, data: st.DataObject, others: int) -> None:
        ids = data.draw(st.lists(st.sampled_from(self.ids), min_size=1, max_size=1 + others))
        leavers = [Leaver(member_id, self._instance(data, member_id)) for member_id in ids]
        self._handle(Leave(token=self._token(), leavers=leavers))

    @rule(instance=st.sampled_from(["i1", "i2"]))
    def remove_instance(self, instance: str) -> None:
        self._handle(Leave(token=self._token(), leavers=[Leaver(NO_MEMBER_ID, instance)]))

    @precondition(lambda self: self.group.state is GroupState.EMPTY)
    @rule(really=st.integers(0, 9))
    def delete(self, really: int) -> None:
        if really == 0:
            self._handle(Delete(token=self._token()))

    @rule(data=st.data())
    def a_session_is_ended(self, data: st.DataObject) -> None:
        member_id = data.draw(st.sampled_from(self.ids))
        self._handle(ExpireSession(member_id=member_id))
        assert member_id not in self.group.members

    @rule(forced=st.integers(0, 2))
    def a_rebalance_is_forced(self, forced: int) -> None:
        if forced == 0:
            self._handle(ForceRebalance())

    @rule(step=st.sampled_from([1, 9, 30, 200, 4000]))
    def time_goes_on(self, step: int) -> None:
        self.now_ms += step
        self._handle(Tick())

    @rule()
    def time_goes_on_to_the_deadline(self) -> None:
        if self.group.next_deadline_ms is not None:
            self.now_ms = max(self.now_ms, self.group.next_deadline_ms)
            self._handle(Tick())

    # ---- what always holds ----

    @invariant()
    def whoever_waits_is_known(self) -> None:
        assert sorted(self.group.waiting.values()) == sorted(self.waiting)
        assert self.group.waiting.keys() <= self.group.members.keys()

    @invariant()
    def a_deadline_lies_ahead(self) -> None:
        deadline = self.group.next_deadline_ms
        if self.group.members or self.waiting:
            assert deadline is not None
        assert deadline is None or deadline > self.now_ms

    @invariant()
    def the_state_fits_the_members(self) -> None:
        group = self.group
        match group.state:
            case GroupState.EMPTY | GroupState.DEAD:
                assert not group.members
            case GroupState.COMPLETING_REBALANCE:
                assert group.members
                assert group.leader not in group.waiting
            case GroupState.STABLE:
                assert group.members
                assert not group.waiting
        assert (group.leader in group.members) if group.members else group.leader is None
        instances = [member.instance_id for member in group.members.values() if member.instance_id is not None]
        assert len(set(instances)) == len(instances)
        # Only those who wait are counted against the limit, so static members who stay away come on top, as in Kafka.
        dynamic = len(group.members) - len(instances)
        assert dynamic <= group.limits.max_size or group.state is GroupState.PREPARING_REBALANCE

    @invariant()
    def replay_gives_the_same(self) -> None:
        if isinstance(self.kept, GroupRecord) and self.group.state in {GroupState.STABLE, GroupState.EMPTY}:
            replayed = ClassicGroup.replay(self.kept, self.now_ms, self.group.limits)
            assert replayed.record() == self.group.record()
            assert replayed.state is self.group.state
        assert (self.group.state is GroupState.DEAD) == isinstance(self.kept, GroupTombstone)

    def teardown(self) -> None:
        if not hasattr(self, "group"):
            return
        for _ in range(
            30_000
        ):  # static members who stay away are waited for again and again, each time for 1 ms or more
            if self.group.next_deadline_ms is None:
                break
            self.now_ms = self.group.next_deadline_ms
            self._handle(Tick())
        assert self.group.state in {GroupState.EMPTY, GroupState.DEAD}, "time alone did not drain the group"
        assert not self.waiting

    # ---- how it is driven ----

    def _join(
        self,
        member_id: str,
        instance: str | None,
        protocols: list[Protocol],
        session: int,
        rebalance: int,
        *,
        new: bool,
    ) -> None:
        who = {"instance_id": instance, "fresh_member_id": f"m{next(self.fresh)}", "protocols": protocols}
        timeouts = {"session_timeout_ms": session, "rebalance_timeout_ms": rebalance}
        version = {"requires_member_id": new, "can_skip_assignment": new}
        self._handle(join_event(self._token(), member_id, **who, **timeouts, **version))

    def _instance(self, data: st.DataObject, member_id: str) -> str | None:
        member = self.group.members.get(member_id)
        right = None if member is None else member.instance_id
        return data.draw(st.sampled_from([right, right, right, "i1"]))

    def _token(self) -> int:
        token = next(self.tokens)
        self.waiting.add(token)
        return token

    def _handle(self, event: Event) -> list[Effect]:
        effects = self.group.handle(event, self.now_ms)
        for effect in effects:
            match effect:
                case Append(record):
                    self.kept = record
                case Reply(token, body):
                    assert token in self.waiting, "a token was answered twice, or never given"
                    self.waiting.remove(token)
                    if isinstance(body, JoinReply) and body.member_id not in {NO_MEMBER_ID, *self.ids}:
                        self.ids.append(body.member_id)
                    if isinstance(body, JoinReply) and body.error is ErrorCode.NONE:
                        assert body.generation == self.group.generation
                        assert body.member_id in self.group.members
                case Transition(before=before, after=after):
                    assert before == self.told_state
                    self.told_state = after
        assert self.told_state == self.group.state.value, "a transition was not told"
        assert self.group.generation >= self.generation, "the generation fell"
        self.generation = self.group.generation
        return effects


def seen(group: ClassicGroup) -> object:
    """A copy of what a heartbeat may change and of what it must not: the group goes on changing its members."""
    sessions = {member_id: group.sessions.at(member_id) for member_id in group.members}
    return copy.deepcopy(
        (group.members, group.generation, group.state, group.next_deadline_ms, sessions, group.waiting)
    )


TestWalk = random_walk(Walk, walks=30, steps=50)
