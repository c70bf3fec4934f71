"""A group under watch in virtual time: worlds of the benchmark, an hour of each."""

import math

import numpy as np
import pytest

from benchmarks.live.play import play
from benchmarks.live.policies import Live
from benchmarks.live.world import Piece, Readings, Scene
from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.live.events import Assigned
from loadwise.assignor.live.reading import Position
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import CapacityTuning, Tuning
from loadwise.assignor.live.watch import GroupWatch
from loadwise.assignor.model import Assignment, GroupSnapshot, Member

NINE = {f"m{number}": 900.0 for number in range(3)}


def scene(*pieces, end_s=600, **more):
    return Scene(name="test", pieces=pieces, end_s=end_s, **more)


def drift(*, at_s=120):
    """Twelve partitions; after a while the heaviest are those that one member has: 1,350/s for one that does 900."""
    even = [112.5] * 12
    live = Live()
    before = Piece(start_s=0, rates={"t": _array(even)}, capacity=NINE)
    probe = scene(before, end_s=60)
    play(probe, live)
    group = live.watch.knowledge.watched.group
    mine = [bool(owner == 0) for owner in group.owner.tolist()]
    hot = [1350.0 / sum(mine) if hot else 0.0 for hot in mine]
    return before, Piece(start_s=at_s, rates={"t": _array(hot)}, capacity=NINE, is_shift=True)


def _array(values):
    return np.array(values, float)


def test_hot_partitions_that_move_to_one_member_are_shared_within_a_minute():
    live = Live()
    outcome = play(scene(*drift()), live)
    assert 1 <= len(outcome.for_load) <= 3
    assert max(outcome.worst[-60:]) <= 0.75  # two of the four hot ones are on one member, whoever assigns
    assert max(outcome.lag_s[180:]) * 1350 <= 900


def test_a_slow_member_is_relieved_within_a_minute():
    speeds = NINE | {"m2": 120.0}
    piece = Piece(start_s=0, rates={"t": _array([75.0] * 12)}, capacity=speeds)
    outcome = play(scene(piece), Live())
    assert max(outcome.lag_s[60:]) * 900 <= 900
    assert len(outcome.for_load) <= 3


SOON = Tuning(capacity=CapacityTuning(half_life_ms=120_000))


@pytest.mark.parametrize("later", [1000.0, 100.0])
def test_a_member_that_was_too_slow_for_any_partition_is_measured_again(later):
    """It gets a partition a while after its last measurement, which shows whether it still is."""
    speeds = {"m0": 1000.0, "m1": 1000.0, "m2": 100.0}
    rates = {"t": _array([300.0] * 4)}
    before = Piece(start_s=0, rates=rates, capacity=speeds)
    live = Live(tuning=SOON)
    outcome = play(scene(before, Piece(start_s=100, rates=rates, capacity={**speeds, "m2": later}), end_s=420), live)
    found_slow, again = ([at for at in outcome.for_load if (at < 100) == slow] for slow in (True, False))
    assert found_slow
    assert again[0] <= 400  # what it measured counts for some minutes after it has lost its partitions
    assert len(again) == (1 if later > 100 else 2)
    assert (2 in live.watch.knowledge.watched.group.owner) == (later > 100)


@pytest.mark.parametrize(("second", "asks"), [(305, False), (319, False), (320, True)])
def test_a_member_without_a_partition_is_tried_a_while_after_the_assignment(second, asks):
    """Its measurement is too old to count, but a new assignment stands for that time first."""
    watch = GroupWatch(LiveSettings(), Weighted(), tuning=SOON)
    watch.knowledge.measured("c", 100.0, 0)
    speeds = {"a": 1000.0, "b": 1000.0, "c": 100.0}
    members = [Member(id=name, topics=["t"], capacity=per_s, capacity_known=True) for name, per_s in speeds.items()]
    target = Assignment(GroupSnapshot.of(members, {"t": 4}), np.array([0, 0, 1, 1], np.int32))
    watch.handle(Assigned(target=target, generation=1, at_ms=200_000, duration_ms=0))
    for now_ms in (second * 1000 - 5000, second * 1000):
        for name in "ab":
            watch.knowledge.measured(name, 1000.0, now_ms)
        watch.knowledge.read({("t", number): Position(now_ms // 10, 0) for number in range(4)}, now_ms)
    decision = watch.decide(now_ms)
    assert decision.ask is asks
    assert ("members without a partition show their speed: c" in str(decision)) is asks


def test_a_member_that_its_user_calls_slow_is_not_measured_again():
    speeds = {"m0": 1000.0, "m1": 1000.0, "m2": 100.0}
    piece = Piece(start_s=0, rates={"t": _array([300.0] * 4)}, capacity=speeds)
    live = Live(tuning=SOON)
    outcome = play(scene(piece, end_s=300, stated={"m0": 10.0, "m1": 10.0, "m2": 1.0}), live)
    assert outcome.for_load == []
    assert live.watch.knowledge.watched.too_slow == ("m2",)


@pytest.mark.parametrize(("lasts_s", "equal"), [(20, True), (50, True), (100, False)])
def test_a_burst_leaves_equal_numbers_of_partitions_behind(lasts_s, equal):
    """A skew that lasts is followed by the same one more often than a burst is."""
    even, capacity = _array([40.0] * 30), {f"m{number}": 600.0 for number in range(5)}
    hot = even + 600.0 * (np.arange(30) % 15 == 0)
    rates = ((0, even), (20, hot), (20 + lasts_s, even))
    live = Live()
    outcome = play(scene(*(Piece(start_s=at, rates={"t": of}, capacity=capacity) for at, of in rates), end_s=200), live)
    counts = np.bincount(live.watch.knowledge.watched.group.owner)
    assert bool(np.ptp(counts) <= 1) is equal
    assert ("the burst is over" in str(live.decisions[-1])) is equal
    assert len(outcome.for_load) == (2 if equal else 1)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_calm_groups_are_left_alone(seed):
    rates = _array([300.0, 200, 150, 100, 100, 80, 60, 50, 40, 30, 20, 10])
    piece = Piece(start_s=0, rates={"t": rates}, capacity=NINE)
    assert play(scene(piece, end_s=3600), Live(), seed).for_load == []


def test_readings_that_are_late_missing_and_wrong_do_not_stop_it():
    readings = Readings(late_s=5, missing=0.1, wrong=0.01, lost=0.1)
    outcome = play(scene(*drift(), readings=readings), Live())
    assert 1 <= len(outcome.for_load) <= 4
    assert max(outcome.worst[-60:]) <= 1.0


def test_one_partition_heavier_than_a_member_makes_no_rebalances():
    piece = Piece(start_s=0, rates={"t": _array([1200.0, 100, 100, 100, 100, 100])}, capacity=NINE)
    outcome = play(scene(piece, end_s=3600), Live())
    assert len(outcome.for_load) <= 1


def watched(slack_s=6.0):
    """A watch over two partitions, each of a member of its own."""
    watch = GroupWatch(LiveSettings(), Weighted(), slack_s=slack_s)
    members = [Member(id=name, topics=["t"], owned={"t": [number]}) for number, name in enumerate("ab")]
    group = GroupSnapshot.of(members, {"t": 2})
    watch.handle(Assigned(target=Assignment(group, group.owner), generation=1, at_ms=1, duration_ms=0))
    return watch


def test_ends_that_are_wrong_one_after_the_other_move_nothing():
    """In successive readings another partition's end is wrong, so that somebody seems to drown for long."""
    watch = GroupWatch(LiveSettings(), Weighted(), slack_s=1.0)
    group = GroupSnapshot.of([Member(id=name, topics=["t"]) for name in "ab"], {"t": 8})
    watch.handle(
        Assigned(
            target=Assignment(group, np.repeat([0, 1], 4).astype(np.int32)),
            generation=1,
            at_ms=0,
            duration_ms=100,
        )
    )
    drowning = 0
    for number in range(1, 60):
        now_ms = 5000 * number
        for name in "ab":
            watch.knowledge.estimates.measured(name, 1000.0, now_ms)
        wrong = {20: 0, 21: 5, 22: 3, 40: 6, 41: 2}.get(number)
        off = [20_000 if row == wrong else 0 for row in range(8)]
        watch.knowledge.read({("t", row): Position(now_ms // 5 + off[row], off[row]) for row in range(8)}, now_ms)
        decision = watch.decide(now_ms)
        if decision is not None:
            assert not decision.ask
            drowning += decision.judgement.worst > 2
    assert drowning >= 2


@pytest.mark.parametrize("cost", [{}, {"costly": 10.0}])
def test_twins_are_twins_where_it_is_told_what_records_cost(cost):
    """Each has a topic of its own, and is busy for a third of the time; the records of one cost ten times as much."""
    watch = GroupWatch(LiveSettings(cost=cost), Weighted(), slack_s=1.0)
    group = GroupSnapshot.of([Member(id=name, topics=["cheap", "costly"]) for name in "ab"], {"cheap": 2, "costly": 2})
    watch.handle(
        Assigned(
            target=Assignment(group, np.array([0, 0, 1, 1], np.int32)),
            generation=1,
            at_ms=0,
            duration_ms=100,
        )
    )
    for now_ms in range(5000, 60_000, 5000):
        cheap, costly = Position(now_ms * 150 // 1000, 0), Position(now_ms * 15 // 1000, 0)
        topics = {"cheap": cheap, "costly": costly}
        watch.knowledge.read({(topic, number): where for topic, where in topics.items() for number in range(2)}, now_ms)
        watch.knowledge.measured("a", 900.0, now_ms)
        watch.knowledge.measured("b", 90.0, now_ms)
        judged = watch.decide(now_ms)
    capacity = judged.capacity_per_s
    if cost:
        assert capacity == pytest.approx([900, 900], rel=0.02)
        assert judged.judgement.before == pytest.approx([1 / 3, 1 / 3], rel=0.02)
        assert judged.judgement.demand == pytest.approx([300, 300], rel=0.02)
    else:
        assert capacity[0] > 4 * capacity[1]


@pytest.mark.parametrize("wrong", [1, 2, 3])
def test_ends_of_0_in_a_row_are_not_taken_for_a_million_records_that_were_processed(wrong):
    """What a member was seen to process is a lower bound of its capacity, which nothing takes back."""
    group = GroupSnapshot.of([Member(id=f"m{number}", topics=("t",)) for number in range(2)], {"t": 2})
    target = Weighted().assign(group)
    watch = GroupWatch(LiveSettings(), Weighted())
    watch.handle(Assigned(target=target, stated={"m0": 0.0, "m1": 0.0}, generation=1, at_ms=0, duration_ms=0))
    for reading in range(1, 25):
        ends = [1_000_000 + 500 * reading] * 2
        if 10 <= reading < 10 + wrong:
            ends[0] = 0
        watch.knowledge.read({("t", number): Position(end, 0) for number, end in enumerate(ends)}, 5_000 * reading)
    assert max(each.known.per_s for each in watch.knowledge.estimates._of.values()) < 300


def test_the_first_commit_tells_where_the_group_began_and_not_how_fast_it_is():
    """The group reads from the end, which nobody knows before it commits."""
    watch = watched()
    for number in range(8):
        committed = number >= 2
        lag = 0 if committed else 1_000_000
        position = Position(1_000_000 + 500 * number, lag, committed=committed)
        watch.knowledge.read({("t", 0): position, ("t", 1): position}, 5000 * (number + 1))
    watch.knowledge.estimates.measured("b", 200.0, 40_000)
    known = watch.knowledge.estimates.of({"a": 0.0, "b": 0.0}, 40_000).per_s
    assert known.max() < 1000


def test_a_backlog_is_told_from_a_commit_that_is_due_by_the_age_of_the_commit():
    def used(age_s):
        watch = watched()
        for number in range(8):
            end = 500 * (number + 1)
            hot = Position(end, 120, age_s=age_s)
            watch.knowledge.read({("t", 0): hot, ("t", 1): Position(end, 0)}, 5000 * (number + 1))
        demand = watch.loads()["t"]
        return demand[0] / demand[1]

    assert used(1.5) == pytest.approx(1.0), "up to 150 records came in the 1.5 s since it has committed"
    assert used(math.inf) == pytest.approx(1.0), "the age is not known: so much may be due"
    assert used(0.5) == pytest.approx(1 + 70 / 30 / 100)


@pytest.mark.parametrize(("slack_s", "price_s"), [(6.0, 2), (None, 6)])
def test_work_since_the_last_commit_is_done_again_where_applications_commit_by_themselves(slack_s, price_s):
    """No member has committed for ten seconds, and six are usual; a client that commits by itself does so to join."""
    watch = GroupWatch(LiveSettings(), Weighted(), slack_s=slack_s)
    group = GroupSnapshot.of([Member(id=name, topics=["t"]) for name in "ab"], {"t": 8})
    target = Assignment(group, np.repeat([0, 1], 4).astype(np.int32))
    watch.handle(Assigned(target=target, generation=1, at_ms=0, duration_ms=0))
    for now_ms in (5000, 10_000):
        for name in "ab":
            watch.knowledge.estimates.measured(name, 1000.0, now_ms)
        hot = Position(now_ms * 3 // 10, now_ms * 3 // 10)  # 1,200 records a second come to a
        watch.knowledge.read({("t", row): hot if row < 4 else Position(0, 0) for row in range(8)}, now_ms)
    assert f"a rebalance costs {price_s:.1f} s" in str(watch.decide(now_ms))


@pytest.mark.parametrize("of_the_group_no_more", [False, True])
def test_what_the_group_reads_no_more_asks_nothing_of_its_members(of_the_group_no_more):
    watch = GroupWatch(LiveSettings(), Weighted(), slack_s=1.0)
    group = GroupSnapshot.of([Member(id=name, topics=["t"]) for name in "ab"], {"t": 4})
    stated = {"a": 1000.0, "b": 1000.0}
    watch.handle(
        Assigned(
            target=Assignment(group, np.array([0, 0, 1, 1], np.int32)),
            stated=stated,
            generation=1,
            at_ms=0,
            duration_ms=100,
        )
    )
    for now_ms in range(5000, 35_000, 5000):
        for name in stated:
            watch.knowledge.estimates.measured(name, 1000.0, now_ms)
        positions = {("t", number): Position(now_ms // 4, 40_000 if number < 2 else 0) for number in range(4)}
        if of_the_group_no_more:  # 3,000 records a second still come, and none was ever read
            positions |= {("old", number): Position(3 * now_ms, 3 * now_ms) for number in range(4)}
        watch.knowledge.read(positions, now_ms)
    assert watch.decide(now_ms).judgement.before == pytest.approx([4 / 3, 2 / 3], rel=0.02)


def test_what_the_group_has_given_up_is_forgotten_and_nothing_else():
    """One watch has read two hundred partitions of another topic before; both know the same of this one."""
    group = GroupSnapshot.of([Member(id=name, topics=["t"]) for name in "ab"], {"t": 4})
    assignment = Assignment(group, np.array([0, 0, 1, 1], np.int32))
    answers = []
    for others in (0, 200):
        watch = GroupWatch(LiveSettings(), Weighted(), slack_s=1.0)
        for now_ms in range(5000, 60_000, 5000):
            given_up = {("old", number): Position(now_ms, now_ms) for number in range(others)}
            mine = {("t", number): Position(now_ms * (number + 1), 100 * number) for number in range(4)}
            watch.knowledge.read((given_up | mine) if now_ms < 30_000 else mine, now_ms)
            if now_ms == 30_000:
                watch.handle(
                    Assigned(
                        target=assignment, stated={"a": 0.0, "b": 0.0}, generation=1, at_ms=now_ms, duration_ms=100
                    )
                )
            watch.knowledge.estimates.measured("a", 5000.0, now_ms)
        answers.append((watch.loads()["t"].tolist(), watch.decide(60_000).judgement.before.tolist()))
        assert len(watch.knowledge.partitions.index) == 4
        assert list(watch.loads()) == ["t"]
    assert answers[0] == answers[1]
