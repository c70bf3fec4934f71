"""Commits of an eager member around its joins: none goes out for a partition that another member may own by then."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from kafka.coordinator.base import MemberState
from kafka.errors import RebalanceInProgressError
from kafka.structs import OffsetAndMetadata, TopicPartition
from seeds import examples

from loadwise.assignor.clients.membership.commits import OwnedCommits

PLACES = [TopicPartition("t", number) for number in range(3)]
some = st.sets(st.sampled_from(PLACES))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), some.filter(bool)),
        st.just(("turn", set())),
        st.tuples(st.sampled_from(["join", "join after an eviction"]), some),
    ),
    min_size=6,
    max_size=30,
)


class Turn:
    """What a coroutine awaits to be continued by the test."""

    def __await__(self):
        yield


class Group:
    """A member's coordinator, and who may own each partition."""

    def __init__(self):
        self.mine = set(PLACES)
        """What nobody else can own at this moment."""
        self.asked, self.stale = {}, {}
        """The newest commit of each partition, and the newest that is older than another member's ownership."""
        self.between = {}
        """The newest commit of each partition between the answer to the join and the new assignment."""
        self.sent, self.stolen, self._running = {}, [], []
        self.fake = SimpleNamespace(
            _send_offset_commit_request=self._commit,
            _manager=SimpleNamespace(call_soon=lambda send: self._running.append(send())),
            _net=SimpleNamespace(sleep=lambda _: Turn()),
            _generation=object(),
            _heartbeat_closed=False,
            _join_task=SimpleNamespace(is_done=False),
            coordinator_unknown=lambda: False,
            fenced=False,
            state=MemberState.STABLE,
        )

    async def _commit(self, offsets):
        self.stolen += offsets.keys() - self.mine
        self.stolen += [each for each, at in offsets.items() if at.offset <= self.stale.get(each, -1)]
        await Turn()
        if self.fake.state is MemberState.REBALANCING:
            raise RebalanceInProgressError
        self.sent |= offsets

    def turn(self):
        """Let the member's thread go on until it waits again."""
        for running in list(self._running):
            try:
                running.send(None)
            except StopIteration:
                self._running.remove(running)


@examples(200)
@given(STEPS)
def test_commits_of_what_was_left_go_out_until_the_join_is_answered_and_once_it_came_back(steps):
    group = Group()
    commits = OwnedCommits(group.fake)
    commits.own(PLACES)
    phases = iter(())

    def join(given_back, unbroken):
        commits.flush(0)
        commits.leave(group.mine, 60.0)
        yield
        group.fake._generation, group.fake.state = object(), MemberState.REBALANCING
        left, group.mine, group.between = group.mine, set(), {}
        yield
        group.fake.state = MemberState.STABLE
        group.mine = set(given_back)
        commits.own(given_back, back=unbroken)
        group.asked |= {each: at for each, at in group.between.items() if unbroken and each in left & given_back}
        moved = left - given_back if unbroken else left
        group.stale |= {each: at for each, at in group.asked.items() if each in moved}

    for number, (step, places) in enumerate(steps):
        if step == "commit":
            group.asked |= dict.fromkeys(places & group.mine, number)
            group.between |= dict.fromkeys(places - group.mine, number)
            commits.put({each: OffsetAndMetadata(number, "", -1) for each in places})
        elif step == "turn":
            group.turn()
        elif next(phases, "over") == "over":
            phases = join(places, step == "join")
            next(phases)
    for _ in phases:
        pass
    for _ in range(10):
        group.turn()
    assert commits.flush(0)
    assert group.stolen == []
    expected = {each: number for each, number in group.asked.items() if number != group.stale.get(each)}
    assert {each: group.sent[each].offset for each in expected} == expected
