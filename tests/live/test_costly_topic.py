"""Real groups that read two topics, of which one has records that take ten times as long: its cost is learned."""

import math
import re
import time
import uuid

import pytest
from figures import Figure
from live_group import LiveGroup
from live_scenes import GROUPS, requests

pytestmark = [pytest.mark.kafka, pytest.mark.live]

COST = 10
CHEAP, FEW, MANY = [75.0] * 12, [45.0] * 2, [15.0] * 6
"""Rates: of the topic whose records cost 1, and of the costly one in two partitions or in six."""
SPEED, SHIFT_SPEED = 2000.0, 900.0
EVEN = 1.15
BUSY = 0.9
NEAR = pytest.approx(COST, rel=0.3)
"""What is learned first may be further off, and is corrected by what is measured after that.

With a cost of 13.4, ten of the cheap partitions would be best with one member: 1.25 by the true cost.
"""


def learned(group):
    """How many times as much a costly record costs, by the last line of a log that reports it; 0 before."""
    line = re.compile(r"Estimated record costs.*: (\S+) (\S+), \1-costly (\S+)")
    logged = [(each[:23], line.search(each)) for member in group.members for each in member.log]
    newest = max(((at, float(it[3]) / float(it[2])) for at, it in logged if it), default=("", 0.0))
    return newest[1]


def seconds_to_learn(group):
    """How long the costs take; infinite on a machine so busy that polls take longer than their records explain."""
    return Figure("costs learned, s", group.seconds_until(lambda: learned(group) == NEAR), 120)


def work(group, counts):
    """What so many records cost, by the numbers of their partitions."""
    return sum(count * (COST if group.arrivals.costly[number] else 1) for number, count in counts.items())


def waiting_s(group):
    """For how many seconds work has come that no member has done yet."""
    done = group.done
    waiting = {number: max(sent - len(done[number]), 0) for number, sent in enumerate(group.arrivals.sent)}
    return work(group, waiting) / work(group, dict(enumerate(group.arrivals.rates)))


def comes(group):
    """The work that comes to each member in a second, by what it owns.

    What members do in some seconds tells less: they work in batches that take up to a second, and late.
    """
    return [work(group, {number: group.arrivals.rates[number] for number in member.owned}) for member in group.alive]


def busiest_share(group):
    return max(comes(group)) / (sum(comes(group)) / len(group.alive))


def share(group):
    return Figure("busiest member over the mean", busiest_share(group), EVEN)


def even(group):
    """Whether three members own all partitions, and the busiest little more than the mean."""
    return group.settled(3) and busiest_share(group) <= EVEN


def learn(broker, clients, assignor):
    """Two members learn it. When a third joins, the work is even: by records the busiest would have 1.25 of the mean.

    The best is 1.0, and with one of the cheap partitions elsewhere it is 1.125.
    """
    with costly_group(broker, assignor, FEW, live={"healthy": 0.2}) as group:  # else idle members get equal numbers
        for client in clients[:2]:
            group.join(client, speed=SPEED)
        group.wait_until(lambda: group.settled(2), why="joining")
        if (costs := seconds_to_learn(group)).value == math.inf:
            return [costs]
        # What waits in a partition counts too.
        # An estimate may leave that range once more; the third member is placed by the one of its time.
        group.wait_until(
            lambda: group.settled(2) and waiting_s(group) <= 1 and learned(group) == NEAR, why="catching up"
        )
        asked = group.load_rebalances()
        group.join(clients[2], speed=SPEED)
        # A cooperative member that joins again before it has given partitions up gives them up one round later.
        group.wait_until(lambda: even(group), why="an even share with the third")
        figures = [costs, share(group), Figure("rebalances requested", group.load_rebalances() - asked, 0)]
        group.wait_until(lambda: waiting_s(group) <= 1, why="going on")
        return figures


def shift(broker, clients, assignor):
    """All costly records come to one member's partitions: by number it has little more than the others, and it drowns.

    Members process 900 records/s of cost 1. What comes to that one costs 1,200, where 600 for each would be even.
    """
    with costly_group(broker, assignor, MANY) as group:
        for client in clients:
            group.join(client, speed=SHIFT_SPEED)
        group.wait_until(lambda: group.settled(3), why="joining")
        if (costs := seconds_to_learn(group)).value == math.inf:
            return [costs]
        group.wait_until(lambda: group.settled(3) and waiting_s(group) <= 1, why="catching up")
        costly = range(len(CHEAP), len(CHEAP) + len(MANY))
        unlucky = max(group.alive, key=lambda member: len(set(member.owned) & set(costly)))
        hot = sorted(set(unlucky.owned) & set(costly))[:2]
        began, asked = time.monotonic(), group.load_rebalances()
        group.arrivals.rates = CHEAP + [sum(MANY) / len(hot) if number in hot else 0.0 for number in costly]
        group.wait_until(lambda: not set(hot) <= set(unlucky.owned) and group.settled(3), why="relief")
        relieved_s = time.monotonic() - began
        # Below that no rebalance is asked for if earlier ones have cost more lag than they saved.
        group.wait_until(
            lambda: group.settled(3) and max(comes(group)) <= BUSY * SHIFT_SPEED and waiting_s(group) <= 1,
            why="shares within what members can do, and little lag",
        )
        return [
            costs,
            Figure("relief, s", relieved_s, 25),
            Figure("shared, lag below a second, s", time.monotonic() - began, 35),
            Figure("busiest member's utilisation", max(comes(group)) / SHIFT_SPEED, BUSY),
            requests(group, asked),
        ]


def costly_group(broker, assignor, costly_rates, **more):
    name = f"costly-{uuid.uuid4().hex}"
    return LiveGroup(broker, name, name, assignor=assignor, rates=CHEAP, costly_rates=costly_rates, tick_s=0.1, **more)


@pytest.mark.parametrize("name", GROUPS)
def test_costs_are_learned(side_by_side, record, name):
    record(side_by_side(learn, GROUPS)[name].result())


@pytest.mark.parametrize("name", GROUPS)
def test_a_shift_of_costly_records(side_by_side, record, name):
    record(side_by_side(shift, GROUPS)[name].result())
