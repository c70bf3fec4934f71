"""A stream in a group: whatever is gained, lost and killed, nothing is lost, and what comes twice was in flight."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from seeds import random_walk

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.errors import OptionError
from loadwise.spark_source.planning.member_progress import Holdings, Jump, MemberOffset, apart, as_json, member_offset
from loadwise.spark_source.planning.progress import from_json, to_json
from loadwise.spark_source.task import OffsetRange

A, B, C = (TopicPartition("t", number) for number in range(3))
PLACES = (A, B, C)


def kept(offset):
    """What Spark gives back: the offset went into the checkpoint as text."""
    return member_offset(json.loads(json.dumps(as_json(offset))), "g")


def test_a_checkpoint_keeps_everything():
    offset = MemberOffset("g", {A: 10, B: 7}, {A: 4}, {B: 3}, generation=5)
    assert kept(offset) == offset
    assert offset.ranges() == (OffsetRange("t", 0, 4, 10),)


@pytest.mark.parametrize(
    ("offset", "option"),
    [
        (to_json({A: 3}), "assignment.mode"),
        (as_json(MemberOffset("other", {A: 3})), "kafka.group.id"),
        (as_json(MemberOffset("g", {A: 3})) | {"version": 2}, "assignment.mode"),
    ],
)
def test_other_checkpoints_are_refused(offset, option):
    with pytest.raises(OptionError, match="checkpoint") as caught:
        member_offset(offset, "g")
    assert caught.value.option == option


def test_a_members_checkpoint_is_refused_by_other_modes():
    with pytest.raises(OptionError, match=r"checkpoint belongs to a stream with assignment\.mode=member"):
        from_json(as_json(MemberOffset("g", {A: 3})))


def test_a_gain_goes_on_where_checkpoint_and_group_agree():
    holdings, start = Holdings(), MemberOffset("g", {A: 10, B: 10, C: 10}, {A: 4})
    jumps = holdings.gained(start, {A: 4, B: 10, C: None}, {})  # A: the micro-batch was processed and not committed
    assert jumps == ()
    assert Holdings().gained(start, {A: 10}, {}) == ()  # it was committed, and no offset written after that
    assert holdings.held == {A: 10, B: 10, C: 10}
    assert holdings.to_commit() == {A: 10, C: 10}


@pytest.mark.parametrize("commit", [2, 7, 12])
def test_the_groups_commit_wins_in_either_direction(commit):
    holdings = Holdings()
    assert holdings.gained(MemberOffset("g", {A: 10}, {A: 4}), {A: commit}, {}) == (Jump(A, 10, commit),)
    assert holdings.held == {A: commit}
    assert holdings.to_commit() == {}


@pytest.mark.parametrize("is_stored", [False, True])
def test_the_groups_commit_still_wins_after_another_rebalance(is_stored):
    """The checkpoint has the old position until there is something to read, in any partition."""
    holdings, start = Holdings(), MemberOffset("g", {A: 10, B: 10})
    holdings.gained(start, {A: 20, B: 10}, {})
    assert holdings.next_offset(start, {A: 20, B: 10}) is start
    holdings.lost([A])
    if is_stored:
        start = kept(holdings.next_offset(start, {B: 15}))
        assert dict(start.positions) == {A: 20, B: 15}
        holdings = Holdings()
    assert holdings.gained(start, {A: 20}, {}) == ()
    assert holdings.held[A] == 20


def test_offsets_without_a_generation_are_of_none():
    """-1 as in Kafka: a checkpoint of it is the same in every version."""
    assert as_json(MemberOffset("g"))["generation"] == -1
    holdings = Holdings()
    holdings.gained(MemberOffset("g", {A: 1}), {A: 1}, {})
    assert holdings.next_offset(MemberOffset("g", {A: 1}), {A: 5}).generation == -1


@pytest.mark.parametrize("moved_to", [2, 10])
def test_a_topic_made_anew_is_read_on_and_committed_where_it_was_moved_to(moved_to):
    """The commit of the earlier topic counts for nothing, also if it was the same offset."""
    holdings, start = Holdings(), MemberOffset("g", {A: 10, B: 10})
    holdings.gained(start, {A: 10, B: 10}, {})
    holdings.moved({A: moved_to})
    assert holdings.held == {A: moved_to, B: 10}
    assert holdings.to_commit() == {A: moved_to}


def test_a_jump_in_a_topic_made_anew_is_forgotten():
    holdings, start = Holdings(), MemberOffset("g", {A: 10, B: 10})
    holdings.gained(start, {A: 20, B: 10}, {})
    holdings.moved({A: 5})
    holdings.lost([A])
    end = holdings.next_offset(start, {B: 15})
    assert (dict(end.positions), dict(end.committed)) == ({A: 10, B: 15}, {})


def test_nothing_is_read_before_its_begin_is_committed():
    holdings, start = Holdings(), MemberOffset("g", {A: 10}, {A: 4})
    holdings.gained(start, {A: 4}, {})
    assert holdings.next_offset(start, {A: 20}) is start
    holdings.acknowledged({A: 10})
    assert holdings.next_offset(start, {A: 20}).ranges() == (OffsetRange("t", 0, 10, 20),)


def test_an_offset_apart_reads_nothing_and_keeps_what_was_committed():
    offset = MemberOffset("g", {A: 10, B: 7, C: 5}, {A: 4}, {B: 3}, generation=5, ids={"t": "old"})
    left = apart(offset, {A: 10, B: 7}, {"t": "new"})
    assert left == MemberOffset("g", {A: 10, B: 7}, {}, {A: 4, B: 3}, generation=5, ids={"t": "new"})
    assert left.ranges() == ()
    assert kept(left) == left


def test_only_what_spark_gives_back_is_committed():
    holdings, start = Holdings(), MemberOffset("g", {A: 10})
    holdings.gained(start, {A: 10}, {})
    end = holdings.next_offset(start, {A: 20})
    assert holdings.to_commit() == {}
    holdings.given_back(start)  # Spark has not taken the answer
    assert holdings.to_commit() == {}
    end = holdings.next_offset(start, {A: 20})
    holdings.given_back(kept(end))
    assert holdings.to_commit() == {A: 20}


def test_a_partition_that_nobody_knows_is_written_down_before_it_is_read():
    holdings, start = Holdings(), MemberOffset("g", {A: 10})
    holdings.gained(start, {B: None}, {B: 3})
    end = holdings.next_offset(start, {B: 9})
    assert (end.ranges(), dict(end.positions)) == ((), {A: 10, B: 3})
    holdings.given_back(kept(end))
    assert holdings.to_commit() == {B: 3}
    holdings.acknowledged({B: 3})
    assert holdings.next_offset(end, {B: 9}).ranges() == (OffsetRange("t", 1, 3, 9),)


def test_a_partition_is_written_down_once():
    holdings, start = Holdings(), MemberOffset("g", {A: 10})
    holdings.gained(start, {B: None}, {B: 3})
    end = kept(holdings.next_offset(start, {B: 3}))
    holdings.given_back(end)
    assert holdings.next_offset(end, {B: 3}) is end  # no empty micro-batch after another
    assert holdings.owned == {B}


def test_a_partition_that_is_lost_keeps_its_position_and_what_was_committed():
    holdings, start = Holdings(), MemberOffset("g", {A: 10, B: 10})
    holdings.gained(start, {A: 10, B: 10}, {})
    end = holdings.next_offset(start, {A: 20, B: 20})
    holdings.lost([A])  # in the middle of the micro-batch
    holdings.given_back(kept(end))
    assert holdings.to_commit() == {B: 20}
    holdings.acknowledged({B: 20})
    after = holdings.next_offset(end, {A: 30, B: 30})
    assert dict(after.positions) == {A: 20, B: 30}
    assert dict(after.committed) == {A: 10}


def test_a_limit_holds_for_what_is_owned():
    holdings, start = Holdings(), MemberOffset("g", {A: 0, B: 0, C: 0})
    holdings.gained(start, {A: 0, B: 0}, {})
    end = holdings.next_offset(start, {A: 100, B: 300, C: 1000}, most=40)
    assert end.ranges() == (OffsetRange("t", 0, 0, 10), OffsetRange("t", 1, 0, 30))


class Groups(RuleBasedStateMachine):
    """One stream and one other consumer in a group, as Kafka, Spark and a user's consumer treat them."""

    def __init__(self):
        super().__init__()
        self.ends = dict.fromkeys(PLACES, 0)
        self.commits = {}
        self.owner = dict.fromkeys(PLACES)  # by the coordinator: "stream", "other" or nobody
        self.target = dict.fromkeys(PLACES)  # what the rebalance under way will give
        self.reads_at = {}  # the other consumer's positions of what it owns
        self.came = Counter()  # by the other consumer
        self.sink = {}  # what the stream's micro-batches wrote: writing one again replaces it
        self.log, self.done = [], 0  # the checkpoint: end offsets, and how many of them are processed
        self.holdings = Holdings()
        self.thinks_it_owns = set()
        self.is_out = False  # and has not noticed yet
        self.allowance = 0

    @initialize(ends=st.fixed_dictionaries({place: st.integers(0, 9) for place in PLACES}))
    def begin(self, ends):
        """As a new query does it: the first micro-batch is empty, and tells where all partitions begin."""
        self.began = dict(ends)
        self.ends = dict(ends)
        self.log, self.done = [MemberOffset("g", dict(ends))], 1
        self.sink[0] = ()

    # The stream

    @property
    def start(self):
        return self.log[self.done - 1]

    def commit(self, offsets):
        """As the coordinator does it: refused as a whole where the member was put out."""
        if self.is_out:
            return
        assert all(self.owner[place] == "stream" for place in offsets)
        self.commits |= offsets
        self.holdings.acknowledged(offsets)

    @rule(limit=st.none() | st.integers(1, 5), answers=st.booleans())
    def ask(self, limit, answers):
        """A ``latestOffset``, and its answer is in the log. Without ``answers`` the coordinator takes no commit."""
        if len(self.log) > self.done:
            return
        holdings, start = self.holdings, kept(self.start)
        holdings.given_back(start)
        if answers:
            self.commit(holdings.to_commit())
        # The stream joins: it gives up what goes, or learns that all is lost, and is told what came.
        if self.is_out:
            holdings.lost(self.thinks_it_owns)
            self.thinks_it_owns, self.is_out = set(), False
        for place in PLACES:
            if self.owner[place] == "stream" != self.target[place]:
                self.owner[place] = None
        for place, target in self.target.items():
            if target == "stream" and self.owner[place] is None:
                self.owner[place] = "stream"
        mine = {place for place in PLACES if self.owner[place] == "stream"}
        holdings.lost(self.thinks_it_owns - mine)
        self.thinks_it_owns &= mine
        holdings.gained(start, {place: self.commits.get(place) for place in mine - self.thinks_it_owns}, {})
        self.thinks_it_owns = mine
        if answers:
            self.commit(holdings.to_commit())
        end = holdings.next_offset(start, self.ends, most=limit)
        if end != start:
            self.log.append(kept(end))

    @precondition(lambda self: len(self.log) > self.done)
    @rule(dies=st.sampled_from(["no", "in the micro-batch", "before Spark knows"]))
    def process(self, dies):
        batch = len(self.log) - 1
        if dies != "in the micro-batch":
            self.sink[batch] = self.log[-1].ranges()
        if dies == "no":
            self.done += 1
        else:
            self.die()

    @rule()
    def die(self):
        """A new process of the query knows the checkpoint and nothing else; its old member has left the group."""
        self.put_out()
        self.holdings = Holdings()
        self.thinks_it_owns, self.is_out = set(), False

    @rule()
    def put_out(self):
        """The coordinator has not heard of the stream for long, and the stream does not know that yet."""
        for place in PLACES:
            if self.owner[place] == "stream":
                self.owner[place] = None
        self.is_out = True

    # The others

    @rule(place=st.sampled_from(PLACES), more=st.integers(1, 5))
    def produce(self, place, more):
        self.ends[place] += more

    @rule(given=st.fixed_dictionaries({place: st.sampled_from(["stream", "other"]) for place in PLACES}))
    def rebalance(self, given):
        self.target = given

    @rule()
    def other_takes_part(self):
        for place in PLACES:
            if self.owner[place] == "other" != self.target[place]:
                self.commits[place] = self.reads_at.pop(place)
                self.owner[place] = None
            if self.target[place] == "other" and self.owner[place] is None:
                self.owner[place] = "other"
                self.reads_at[place] = self.commits.get(place, self.began[place])
                # The stream's micro-batch in flight, or that nobody has heard the end of: it may come again here.
                self.allowance += max(0, self.log[-1].positions[place] - self.reads_at[place])

    @rule(place=st.sampled_from(PLACES), most=st.integers(1, 5), commits=st.booleans())
    def other_reads(self, place, most, commits):
        if self.owner[place] == "other":
            at = self.reads_at[place]
            end = min(at + most, self.ends[place])
            self.came.update((place, offset) for offset in range(at, end))
            self.reads_at[place] = end
            if commits:
                self.commits[place] = end

    @rule()
    def other_dies(self):
        for place in PLACES:
            if self.owner[place] == "other":
                self.allowance += self.reads_at.pop(place) - self.commits.get(place, self.began[place])
                self.owner[place] = None

    def read(self):
        ranges = [item for written in self.sink.values() for item in written]
        stream = Counter((TopicPartition(r.topic, r.partition), at) for r in ranges for at in range(r.start, r.end))
        return stream + self.came

    @invariant()
    def what_is_committed_was_read(self):
        read = self.read()
        for place, commit in self.commits.items():
            missing = [at for at in range(self.began[place], commit) if not read[place, at]]
            assert not missing, (place, missing)

    @invariant()
    def what_comes_twice_was_in_flight(self):
        assert sum(times - 1 for times in self.read().values()) <= self.allowance

    def teardown(self):
        """The other consumer leaves: the stream reads all the rest."""
        if not self.log:
            return
        self.other_dies()
        self.target = dict.fromkeys(PLACES, "stream")
        for _ in range(3):
            self.ask(None, answers=True)
            if len(self.log) > self.done:
                self.process("no")
        read = self.read()
        assert [key for key in _all(self.began, self.ends) if not read[key]] == []
        self.what_comes_twice_was_in_flight()


def _all(began, ends):
    return [(place, at) for place in PLACES for at in range(began[place], ends[place])]


TestGroups = random_walk(Groups, walks=40, steps=40)
