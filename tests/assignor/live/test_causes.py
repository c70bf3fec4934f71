"""The causes of the rebalances that a member led."""

from collections import Counter

import pytest

from loadwise.assignor.live.causes import Causes

AB = frozenset("ab")


def led(members, *, asked=False, second_round=False, before=AB):
    rebalances = Causes()
    if before is not None:
        rebalances.lead(before, second_round=False)
    rebalances.asked = asked
    return rebalances, rebalances.lead(frozenset(members), second_round=second_round)


@pytest.mark.parametrize(
    ("members", "more", "cause", "logged"),
    [
        ("ab", {"asked": True}, "load", "for the load"),
        ("abc", {"asked": True}, "load", "for the load"),
        ("ab", {"before": None}, "other", "leads now"),
        ("abc", {"second_round": True}, "second_round", "second round"),
        ("bcd", {}, "members", "2 members came, 1 went"),
        ("a", {}, "members", "0 members came, 1 went"),
        ("abc", {}, "members", "1 member came, 0 went"),
        ("ab", {}, "other", "topics or subscriptions changed"),
    ],
)
def test_the_cause_is_the_request_the_leader_or_the_members(members, more, cause, logged):
    _, (counted_as, log) = led(members, **more)
    assert counted_as == cause
    assert logged in log


def test_a_request_causes_one_rebalance_and_none_of_a_later_leader():
    rebalances, _ = led("ab", asked=True)
    assert rebalances.lead(AB, second_round=False)[0] == "other"
    rebalances.asked = True
    rebalances.follow()
    assert rebalances.lead(AB, second_round=False) == ("other", "this member leads now")


def test_causes_and_moved_demand_add_up():
    rebalances = Causes()
    for cause, moved in (("load", 0.25), ("members", 0.5), ("load", 0.125)):
        rebalances.count(cause, moved)
    assert rebalances.by_cause == Counter(load=2, members=1)
    assert rebalances.moved_share == 0.875
