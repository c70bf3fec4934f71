import itertools

from hypothesis import given
from hypothesis import strategies as st

from loadwise.demo.capacity import explain, members_needed, verdict
from loadwise.demo.figures import Figures

FLIGHTS = (3974, 20536, 54635, 80570, 5162, 18460, 32729, 601, 48110, 685, 342, 32, 58665, 12275)


def row(assignor: str, keeps_up_per_s: float) -> Figures:
    return Figures(
        assignor=assignor,
        records=(0,),
        max_mean_first=1,
        greedy_first=1,
        max_mean_last=1,
        greedy_last=1,
        drained_s=1,
        ideal_s=1,
        keeps_up_per_s=keeps_up_per_s,
        rebalances=1,
        moved=0,
        partitions=1,
        repeated=0,
        pace=1,
    )


@given(st.lists(st.integers(0, 10), min_size=1, max_size=5), st.integers(1, 12))
def test_the_members_that_it_takes_are_enough_and_near_the_least(arrivals: list[int], rate: int) -> None:
    needed = members_needed(arrivals, rate)
    if needed is None:
        assert max(arrivals) > rate
        return

    def fits(members: int) -> bool:
        """By trying every assignment there is."""
        return any(
            all(sum(a for a, o in zip(arrivals, owners, strict=True) if o == m) <= rate for m in range(members))
            for owners in itertools.product(range(members), repeat=len(arrivals))
        )

    assert fits(needed)
    assert needed <= next(members for members in itertools.count(1) if fits(members)) + 1


def test_a_group_that_is_fast_enough_is_told_who_falls_behind_all_the_same() -> None:
    judged = verdict(FLIGHTS, arrival_per_s=33_678, rate_per_s=16_000, members=3)
    assert judged.enough
    told = explain(judged, [row("range", 22_427), row("weighted", 47_500)])
    assert "70% used" in told[0]
    assert "range (up to 22,427)" in told[1]
    assert "weighted" not in told[1]


def test_a_group_that_is_too_slow_is_told_how_many_it_takes() -> None:
    judged = verdict(FLIGHTS, arrival_per_s=60_000, rate_per_s=16_000, members=3)
    assert not judged.enough
    (told,) = explain(judged, [row("range", 22_427)])
    assert "no assignor helps" in told
    assert "takes 4 members" in told


def test_a_partition_that_outruns_one_member_is_named() -> None:
    judged = verdict(FLIGHTS, arrival_per_s=100_000, rate_per_s=16_000, members=3)
    assert judged.needed is None
    (told,) = explain(judged, [])
    assert "partition 3 alone gets 23,924" in told
    assert "no number of members helps" in told
