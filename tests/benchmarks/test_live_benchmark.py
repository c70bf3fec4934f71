"""The simulated days: a few minutes of each here, hours in the long tier; and what their figures mean."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.live.figures import Figures, figures, missed, summary
from benchmarks.live.play import SimulatedGroup, play
from benchmarks.live.policies import AllKnowing, Live, Policy, policies
from benchmarks.live.scenes import (
    SCENES,
    costly_topic,
    deleted_topics,
    growing_topic,
    hot_keys,
    new_topics,
    steady,
    unequal_subscriptions,
)
from benchmarks.live.sweep import VALUES, changed, default_of, table
from benchmarks.live.world import Piece, Scene
from loadwise.assignor.algorithms.roundrobin import RoundRobin
from loadwise.assignor.algorithms.sticky import Sticky


def part(scene, start_s, end_s):
    """The scene from one second to another, as if it began there."""
    begun = [piece for piece in scene.pieces if piece.start_s <= start_s][-1]
    later = [piece for piece in scene.pieces if start_s < piece.start_s < end_s]
    pieces = [replace(piece, start_s=max(piece.start_s - start_s, 0)) for piece in (begun, *later)]
    return replace(scene, pieces=tuple(pieces), end_s=end_s - start_s)


def test_every_scene_lasts_a_day_and_is_drawn_from_its_seed():
    for make in SCENES:
        scene = make(3)
        assert scene.end_s == 86_400
        assert [piece.start_s for piece in scene.pieces] == sorted({piece.start_s for piece in scene.pieces})
        assert pickle.dumps(make(3).pieces[-10:]) == pickle.dumps(scene.pieces[-10:])


def test_loadwise_shares_hot_keys_within_a_minute():
    """They move at 4,489 s."""
    scene = part(hot_keys(2), 4420, 4560)
    outcome = play(scene, Live())
    assert [scene.pieces[1].start_s < at <= scene.pieces[1].start_s + 60 for at in outcome.for_load] == [True]
    assert outcome.worst[-1] < 0.9 * max(outcome.worst)


@pytest.mark.long
def test_loadwise_is_near_the_one_that_knows_everything():
    scene = hot_keys(2).shortened(5400)
    best = play(scene, AllKnowing())
    itself = figures(scene, best, best)
    assert (itself.ratio, itself.avoidable, itself.recovered_s) == (1.0, 0.0, 0.0)
    ours = figures(scene, play(scene, Live()), best)
    assert ours.ratio <= 1.15
    assert ours.avoidable <= 0.02
    assert ours.recovered_s <= 60


def test_all_assignors_meet_the_same_arrivals():
    scene = hot_keys(2).shortened(41)
    ends = []
    for policy in policies():
        group = SimulatedGroup(scene, policy, 5)
        group.run()
        ends.append(group._end)
    assert all(np.array_equal(end, ends[0]) for end in ends)


def test_nothing_is_worked_off_twice_or_before_it_came():
    """Two members of 1,000 records/s each: one is sent 1,200 and falls behind by 200 a second."""
    piece = Piece(start_s=0, rates={"t": np.array([1200.0, 300.0])}, capacity={"m0": 1000.0, "m1": 1000.0})
    scene = Scene(name="two", pieces=(piece,), end_s=200)
    outcome = play(scene, Policy("round robin", RoundRobin()))
    assert outcome.worst == [1.2] * 200
    assert outcome.lag_s[-1] - outcome.lag_s[99] == pytest.approx(100 * 200 / 1500, rel=0.1)


def test_a_costly_topic_fills_its_member():
    best = play(costly_topic(1).shortened(60), AllKnowing())
    assert np.max(best.worst) < 1
    even = play(costly_topic(1).shortened(60), Policy("sticky", Sticky()))
    assert np.max(even.worst) > np.max(best.worst)


@pytest.mark.long
def test_what_a_costly_record_costs_is_learned():
    """The simulator does not state it; the hot keys of both topics move once."""
    scene = costly_topic(2).shortened(5400)
    live = Live()
    ours = figures(scene, play(scene, live, 2), play(scene, AllKnowing(), 2))
    assert live.watch.knowledge.costs["costly"] / live.watch.costs["cheap"] == pytest.approx(10, rel=0.3)
    assert ours.ratio <= 1.10


@pytest.mark.long
def test_topics_of_one_cost_are_not_told_apart():
    live = Live()
    play(new_topics(1).shortened(12_600), live, 1)
    assert live.watch.knowledge.costs == {}


@pytest.mark.parametrize("seconds", [60, pytest.param(3600, marks=pytest.mark.long)])
def test_a_steady_group_is_left_alone(seconds):
    assert play(steady(1).shortened(seconds), Live()).for_load == []


def test_a_summary_has_medians_and_the_worst():
    one = Figures(ratio=1.0, avoidable=0.0, for_load=2, moved_per_s=30.0, recovered_s=10.0)
    two = Figures(ratio=1.2, avoidable=0.02, for_load=4, moved_per_s=10.0, recovered_s=50.0)
    greedy = Figures(ratio=1.0, avoidable=0.0, for_load=99, moved_per_s=200.0, recovered_s=0.0)
    it = summary([one, two, one], [greedy, greedy, greedy])
    assert (it.ratio, it.worst_ratio) == (1.0, 1.2)
    assert (it.for_load, it.moved_of_greedy, it.recovered_s) == (2, pytest.approx(70 / 600), 50.0)
    assert math.isnan(summary([one, two], []).moved_of_greedy)


def test_a_goal_that_is_missed_is_told():
    best = Figures(ratio=1.0, avoidable=0.0, for_load=0, moved_per_s=1.0, recovered_s=60.0)
    greedy = Figures(ratio=1.0, avoidable=0.0, for_load=99, moved_per_s=90.0, recovered_s=0.0)
    assert list(missed(summary([best, best, best], [greedy] * 3), steady=True)) == []
    worse = Figures(ratio=1.2, avoidable=0.021, for_load=4, moved_per_s=70.0, recovered_s=61.0)
    told = list(missed(summary([best, best, worse], [greedy] * 3), steady=False))
    assert told == [
        "utilisation 1.000, worst 1.200: more than 1.15",
        "overload 0.00%, worst 2.10%: more than 2%",
        "moved 26.67% of what greedy moves: more than 10%",
        "back after 61 s: more than 60 s",
    ]
    assert list(missed(summary([best, worse], []), steady=True))[-1] == "4 rebalances for the load: more than 0"


def test_the_sweep_has_a_line_for_each_value():
    played = {
        (setting, value): [Figures(ratio=1.0 + value, avoidable=0.01, for_load=1, moved_per_s=0.0, recovered_s=30.0)]
        for setting, values in VALUES.items()
        for value in values
    }
    lines = list(table({"steady": played, "hot keys": played}, 6.0))
    assert lines[1].split() == ["healthy", "0.5", "1.500", "1.500", "steady", "1.00%", "steady", "8", "30"]
    assert len(lines) == 1 + sum(map(len, VALUES.values()))
    assert sum(line.endswith(" *") for line in lines) == len(VALUES), "the default of each setting is among the values"
    assert all(default_of(setting) in values for setting, values in VALUES.items())


def test_one_number_is_changed_at_a_time():
    live = changed("restraint.patience_s", 5.0).anew()
    assert live.watch.tuning.restraint.patience_s == 5.0
    assert live.tuning.demand == changed("healthy", 0.8).tuning.demand
    assert changed("healthy", 0.8).settings.healthy == 0.8


class Watching(Policy):
    """Round robin that keeps what it has answered."""

    def __init__(self):
        super().__init__("round robin", RoundRobin())
        self.answers = []

    def assign(self, members, counts, now_s, took_s):
        answer = super().assign(members, counts, now_s, took_s)
        self.answers.append((now_s, dict(counts), answer.by_member()))
        return answer


def test_topics_grow_and_go_as_their_scenes_tell():
    grown, gone = Watching(), Watching()
    play(part(growing_topic(1), 10_780, 10_810), grown)
    assert [(at, counts["t"]) for at, counts, _ in grown.answers] == [(0, 12), (20, 24)]
    outcome = play(part(deleted_topics(1), 14_380, 14_410), gone)
    assert [(at, sorted(counts)) for at, counts, _ in gone.answers] == [
        (0, ["t0", "t1", "t2", "t3"]),
        (20, ["t1", "t2", "t3"]),
    ]
    assert outcome.moved_per_s < 2700  # what is deleted is not moved


def test_members_get_only_what_they_read():
    watching = Watching()
    play(unequal_subscriptions(1).shortened(60), watching)
    _, _, answer = watching.answers[0]
    topics = {member: sorted(topic for topic, numbers in owned.items() if numbers) for member, owned in answer.items()}
    assert topics["m0"] == topics["m1"] == ["orders"]
    assert topics["m2"] == topics["m3"] == ["clicks"]
