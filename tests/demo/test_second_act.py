"""The second act of the demo: the stream, and how a course is judged."""

from __future__ import annotations

import asyncio
import itertools
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.coordinator import ThreadedCoordinator
from loadwise.demo.arrivals import HOT, PARTITIONS, Arrivals
from loadwise.demo.cluster import existing_kafka
from loadwise.demo.live_group import Moment
from loadwise.demo.second_act import Course, Script, headline, in_short, play


@given(st.floats(1, 10_000), st.floats(0, 100), st.lists(st.floats(0, 200), min_size=2).map(sorted))
def test_arrivals_never_go_back_and_keep_their_rate(rate: float, shift_s: float, times: list[float]) -> None:
    arrivals = Arrivals(rate_per_s=rate, shift_s=shift_s)
    told = [arrivals.until(at_s) for at_s in times]
    for before, after in itertools.pairwise(told):
        assert all(a <= b for a, b in zip(before, after, strict=True))
    assert sum(told[-1]) == pytest.approx(rate * times[-1], abs=PARTITIONS)


def test_the_hot_partitions_are_of_one_member_under_range_and_round_robin() -> None:
    assert len({partition // (PARTITIONS // 3) for partition in HOT}) == 1, "range gives four in a row"
    assert len({partition % 3 for partition in HOT}) == 1, "round robin gives every third"
    arrivals = Arrivals(rate_per_s=900.0, shift_s=10.0)
    hot = [after - before for before, after in zip(arrivals.until(10.0), arrivals.until(20.0), strict=True)]
    assert [hot[partition] for partition in HOT] == pytest.approx([3600, 3600], abs=1)


def test_a_course_is_calm_once_every_lag_stays_under_a_second_of_traffic() -> None:
    script = Script(assignors=["weighted"], arrival_per_s=100.0, shift_s=10.0, crash_s=20.0, end_s=30.0)
    lags = [0] * 10 + [50, 300, 80, 120, 90, 80, 70, 60, 50, 40] + [500] * 10
    course = Course(
        assignor="weighted",
        moments=[Moment(float(at), lag) for at, lag in enumerate(lags)],
        rebalances=2,
        script=script,
    )
    assert course.recovered_s(10.0, 20.0) == 4.0, "the lag of 120 at 13 s was above"
    assert course.recovered_s(20.0, 30.0) is None
    assert course.peak == 500
    assert "weighted after 4 s" in headline([course])


@pytest.mark.parametrize(("lag", "is_luck"), [(10, True), (90, False)])
def test_the_headline_says_where_chance_decided(lag: int, is_luck: bool) -> None:
    script = Script(assignors=["range", "cooperative-sticky"], arrival_per_s=100.0, shift_s=1.0, crash_s=2.0, end_s=3.0)
    courses = [
        Course(assignor=name, moments=[Moment(1.0, worst), Moment(2.0, worst)], rebalances=1, script=script)
        for name, worst in (("cooperative-sticky", lag), ("range", 100))
    ]
    assert ("chance decides" in in_short(courses)) == is_luck


@pytest.mark.parametrize(
    ("assignors", "end_s"), [(["weighted"], 3.0), pytest.param(["range", "weighted"], 20.0, marks=pytest.mark.long)]
)
async def test_groups_live_through_all_of_it(
    coordinator: ThreadedCoordinator, assignors: list[str], end_s: float
) -> None:
    """With real members: the stream is read, one member is killed, and the other two take over."""
    script = Script(assignors=assignors, rate_per_s=600, arrival_per_s=300, shift_s=1.0, crash_s=2.0, end_s=end_s)
    shown: list[float] = []
    topic = f"stream-{uuid.uuid4().hex[:8]}"
    async with existing_kafka(coordinator.bootstrap_servers, topic, PARTITIONS) as cluster:
        courses = await asyncio.wait_for(play(cluster, script, shown.append), 300)
    assert sorted(course.assignor for course in courses) == assignors
    assert shown == sorted(shown)
    for course in courses:
        if end_s > 3:
            assert course.rebalances >= 1, "the members that are left share what the dead one had"
        # A machine that stops as long as a short stream lasts shows it once.
        assert len(course.moments) == len(shown) > (3 if end_s > 3 else 0)
