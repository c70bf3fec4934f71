"""Members whose programs spend their time in various ways: what they say of themselves, and how soon they get help."""

from unittest.mock import Mock

import pytest

from benchmarks.live.programs import PROGRAMS
from benchmarks.live.shapes import CONFIGS, QUICK, SPEED, Group, burst, calm, downstream, lines, shifted

SILENT = ["bucket", "batch", "tasks", "pool", "executor"]


def said(program, seconds=30.0):
    """What members say of their speed, in a group in which nothing happens."""
    group = Group([program] * 3)
    group.run(seconds)
    return [member.leader.busy.per_s for member in group.members]


def test_a_member_that_sleeps_for_its_records_says_what_it_can():
    assert said("in line") == pytest.approx([SPEED] * 3, rel=0.06)


@pytest.mark.parametrize("program", ["tasks", "pool", "executor"])
def test_a_member_that_hands_its_records_on_says_nothing(program):
    assert said(program) == [0.0] * 3


@pytest.mark.parametrize("program", ["in line", "bucket", "batch"])
@pytest.mark.parametrize("times", [0.5, 1.9])
def test_what_a_member_says_of_itself_counts_for_less_than_what_it_does(program, times):
    """As programs do whose work is not between their polls: a rate limit of 600/s was measured as 1,165/s."""
    group = Group([program] * 3)
    for member in group.members:
        member.leader.busy = Mock(per_s=times * SPEED, each_s={})
    group.run(45.0)
    group.shift()
    group.run(90.0)
    assert not [asked for asked in group.outcome.asked_s if asked < 45.0]
    assert group.outcome.first_s(45.0) <= 15.0
    assert group.outcome.calm_s(45.0) <= 25.0


@pytest.mark.parametrize("program", SILENT)
def test_an_overload_is_acted_on_within_15_seconds_whatever_the_program_looks_like(program):
    outcome, at_s = shifted(program, wait_s=45.0)
    assert not [asked for asked in outcome.asked_s if asked < at_s]
    assert outcome.first_s(at_s) <= 15.0
    assert outcome.calm_s(at_s) <= 25.0


@pytest.mark.parametrize("name", ["quick", "quick, costs 1:10", "quick, no notes"])
def test_commits_once_a_minute_are_no_backlog(name):
    """The members are half idle: the group is not too small, nothing moves, and no member stands still."""
    decisions = calm("by hand, 60 s", CONFIGS[name], seconds=250.0).decisions
    assert {decision.now_ms for decision in decisions if decision.judgement.known}
    assert [str(each) for each in decisions if each.ask or each.waiting or each.missing] == []
    assert {each.wanted for each in decisions} <= {None, 3}


@pytest.mark.parametrize("seed", range(3))
def test_an_overload_is_acted_on_though_members_never_commit_at_the_same_time(seed):
    group = Group(["by hand, 60 s"] * 3, seed=seed)
    for second, member in ((20.0, group.members[0]), (40.0, group.members[1])):
        group.run(second)
        group.restart(member, "by hand, 60 s", SPEED)
    group.run(250.0)
    assert [str(each) for each in group.outcome.decisions if each.ask or each.waiting or each.missing] == []
    group.shift()
    group.run(310.0)
    assert group.outcome.first_s(250.0) <= 60.0


@pytest.mark.parametrize("program", ["batch", "pool"])
def test_with_the_clients_defaults_it_is_acted_on_within_25_seconds(program):
    outcome, at_s = shifted(program, CONFIGS["defaults"], wait_s=60.0)
    assert outcome.first_s(at_s) <= 25.0
    assert outcome.calm_s(at_s) <= 40.0


@pytest.mark.parametrize(
    ("play", "program"),
    [
        (calm, "pauses of 3 s"),
        (calm, "one slow in 1,000"),
        (calm, "alternating"),
        (downstream, "in line"),
        (downstream, "by hand, 5 s"),
        (downstream, "one slow in 1,000"),
        (downstream, "pauses of 3 s"),
        (burst, "batch"),
    ],
)
def test_what_passes_by_itself_moves_nothing(play, program):
    more = {"seconds": 150.0} if play is calm else {}
    assert play(program, QUICK, 0, **more).asked_s == []


@pytest.mark.parametrize("seed", [0, 1])
def test_a_member_that_was_slow_at_its_start_does_not_stay_empty_in_a_group_with_little_to_do(seed):
    """Cold imports on a busy machine: for 20 seconds it is 20 times slower than its group, of which 4 % are used."""
    group = Group(["in line"] * 5, seed=seed, speeds=(8 * SPEED,) * 5)
    group.rates *= 0.8
    group.run(30.0)
    slow = group.restart(group.members[1], "in line", 0.4 * SPEED)
    group.run(50.0)
    slow.speed = 8 * SPEED
    for number in (2, 3):
        group.run(30.0 + 60 * (number - 1))
        group.restart(group.members[number], "in line", 8 * SPEED)
        group.run(40.0 + 60 * (number - 1))
        assert all(member.position for member in group.alive)
    assert group.outcome.asked_s == []


def test_producers_that_send_batches_of_a_thousand_records_cost_no_rebalance():
    assert calm("in line", CONFIGS["quick, batches of 1,000"], 0, seconds=120.0).asked_s == []


def test_the_table_has_a_line_for_each_program():
    each = [(10.0, 15.0, 2000.0, 0), (12.0, 16.0, 2500.0, 0)]
    told = list(lines(iter((program, "quick", each, 0) for program in PROGRAMS)))
    assert [line[:18].strip() for line in told[1:]] == list(PROGRAMS)
    assert told[1].split()[-6:] == ["11.0", "12.0", "15.5", "16.0", "2,500", "0"]
