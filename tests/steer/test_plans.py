"""What a steering process makes of readings: how old commits are, and the plan of an assignment."""

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.load.lag import PartitionOffsets
from loadwise.assignor.model import RECORDS_PER_S, GroupSnapshot, Member
from loadwise.assignor.steered import SteeredMember, steered
from loadwise.running_group.members import GroupReading, RunningGroup
from loadwise.steer.plans import CommitAges, plan_of


def reading(at_s, committed):
    group = RunningGroup(group_id="g", protocol="loadwise", is_classic=False, state="Stable", members=[])
    offsets = {("t", number): PartitionOffsets(0, 100, each) for number, each in enumerate(committed)}
    return GroupReading(at_s=at_s, group=group, partitions={"t": len(committed)}, offsets=offsets, racks={})


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 9))
def test_a_commit_is_never_older_than_its_age(gaps, commits_every):
    """A member commits every so many tenths of a second; readings come at any time."""
    ages, now = CommitAges(), 0
    for gap in gaps:
        now += gap
        (age_s,) = ages.read(reading(now / 10, [now // commits_every]))
        assert age_s >= (now % commits_every) / 10 - 1e-9


def test_an_age_is_known_from_the_second_commit_on_and_grows_without_one():
    ages = CommitAges()
    assert ages.read(reading(10.0, [5, None])) == [math.inf, math.inf]
    assert ages.read(reading(12.0, [6, None])) == [2.0, math.inf]
    assert ages.read(reading(14.0, [6, 0])) == [4.0, 2.0]


@given(st.randoms(use_true_random=False))
def test_a_broker_gives_members_what_the_plan_says(chance):
    sizes = {f"topic-{number}": chance.randint(1, 6) for number in range(3)}
    ids = {name: random.Random(name).randbytes(16) for name in sizes}
    members = [
        Member(
            id=f"m{number}",
            topics=sorted(chance.sample(sorted(sizes), chance.randint(1, 3))),
            instance_id=f"i{number}" if chance.random() < 0.5 else None,
        )
        for number in range(chance.randint(1, 5))
    ]
    load = {name: [chance.random() * 100 for _ in range(size)] for name, size in sizes.items()}
    target = Weighted().assign(GroupSnapshot.of(members, sizes, load=load, load_unit=RECORDS_PER_S))
    notes = [SteeredMember(id=f"~{place}", rack_id=part) for place, part in enumerate(plan_of(target, ids).encode(1))]
    rows = [
        SteeredMember(id=each.id, instance_id=each.instance_id, topics=[ids[name] for name in each.topics])
        for each in members
    ]
    answer = steered([*rows, *notes], {ids[name]: size for name, size in sizes.items()})
    expected = {
        member: {ids[name]: sorted(numbers) for name, numbers in its.items() if len(numbers)}
        for member, its in target.by_member().items()
    }
    assert {member: its for member, its in answer.items() if not member.startswith("~")} == expected
