"""Real groups that come and go under steady arrivals: every generation is even, and calm groups are left alone.

``LOADWISE_CALM_S`` is how long nothing may happen at the end, two minutes by default.
"""

import os
import uuid

import numpy as np
import pytest
from figures import Figure
from live_group import LiveGroup
from live_scenes import GROUPS

RATES = [65.0, 55, 45, 40, 35, 30, 25, 20, 15, 10, 5, 5]
TOTAL = sum(RATES)
SPEED = 450.0
EVEN = 1.15
KNOWN_S, MEASURED_S, CALM_S = 15, 15, float(os.environ.get("LOADWISE_CALM_S", "120"))
pytestmark = [pytest.mark.kafka, pytest.mark.live]


def best_share(members):
    """The smallest possible share of the busiest member, over the mean: all ways to share the partitions are tried."""
    loads = np.zeros((1, members))
    for rate in RATES:
        loads = np.unique(
            np.sort(np.vstack([loads + rate * (np.arange(members) == each) for each in range(members)])), axis=0
        )
    return loads.max(axis=1).min() / (TOTAL / members)


def busiest_share(group, *, after_s=MEASURED_S):
    """What the busiest processes while so many seconds of records arrive, over the mean and over the best possible."""
    before = {member: member.processed for member in group.alive}

    def done():
        return [member.processed - count for member, count in before.items()]

    why = f"processing {after_s:g} seconds of records"
    group.wait_until(lambda: sum(done()) >= TOTAL * after_s, why=why, longer_s=after_s)
    shares = done()
    return max(shares) / (sum(shares) / len(shares)) / best_share(len(shares))


def steady(broker, clients, assignor):
    """A third member joins, one is killed, and then nothing happens for two minutes."""
    name = f"steady-{uuid.uuid4().hex}"
    with LiveGroup(broker, name, name, assignor=assignor, rates=RATES, tick_s=0.25) as group:
        for client in clients[:2]:
            group.join(client, speed=SPEED)
        group.wait_until(lambda: group.settled(2), why="joining")
        # What comes in the first seconds of a topic is no rate yet.
        known = TOTAL * KNOWN_S
        group.wait_until(lambda: sum(group.arrivals.sent) >= known and group.lag <= TOTAL, why="catching up")
        group.join(clients[2], speed=SPEED)
        group.wait_until_at_rest(3, why="joining of the third")
        joined = busiest_share(group)
        group.members[0].kill()
        group.wait_until_at_rest(2, why="going on without the one that was killed")
        generation = group.generation
        killed = busiest_share(group)
        busiest_share(group, after_s=CALM_S - MEASURED_S)
        assert (group.generation, group.load_rebalances()) == (generation, 0), f"{CALM_S:g} calm seconds"
        return [
            Figure("busiest member over the best possible, after the join", joined, EVEN),
            Figure("busiest member over the best possible, after the kill", killed, EVEN),
        ]


def restart(broker, clients, assignor):
    """All members are replaced, one after the other: nothing stays behind, and no rebalance is requested."""
    name = f"restart-{uuid.uuid4().hex}"
    with LiveGroup(broker, name, name, assignor=assignor, rates=RATES, tick_s=0.25) as group:
        for client in clients:
            group.join(client, speed=SPEED)
        group.wait_until(lambda: group.settled(3), why="joining")
        group.wait_until(lambda: group.lag <= TOTAL, why="catching up")
        for former, client in zip(list(group.members), clients, strict=True):
            former.stop()
            group.wait_until(lambda: group.settled(2), why="going on without the one that left")
            group.join(client, speed=SPEED)
            group.wait_until(lambda: group.settled(3), why="joining of another")
        group.wait_until_at_rest(3, why="joining of the last")
        restarted = busiest_share(group)
        group.wait_until(lambda: group.lag <= TOTAL, why="catching up")
        return [
            Figure("busiest member over the best possible, after the restart", restarted, EVEN),
            Figure("rebalances requested", group.load_rebalances(), 0),
        ]


@pytest.mark.parametrize("name", GROUPS)
def test_steady(side_by_side, record, name):
    record(side_by_side(steady, GROUPS)[name].result())


@pytest.mark.parametrize("name", GROUPS)
def test_restart(side_by_side, record, name):
    record(side_by_side(restart, GROUPS)[name].result())
