"""Real groups that come and go under steady arrivals: every generation is even, and calm groups are left alone."""

import numpy as np
import pytest
from live_group import LiveGroup
from topics import WAIT_S

pytestmark = [pytest.mark.kafka, pytest.mark.live]

RATES = [130.0, 110, 90, 80, 70, 60, 50, 40, 30, 20, 10, 10]
TOTAL = sum(RATES)
MEASURED_S, CALM_S = 15, 120
MIXED = ("aiokafka", "kafka-python", "aiokafka")


def best_share(members):
    """The smallest possible share of the busiest member, over the mean: all ways to share the partitions are tried."""
    loads = np.zeros((1, members))
    for rate in RATES:
        loads = np.unique(
            np.sort(np.vstack([loads + rate * (np.arange(members) == each) for each in range(members)])), axis=0
        )
    return loads.max(axis=1).min() / (TOTAL / members)


def busiest_share(group, *, after_s):
    """The busiest member's share of what is processed while so many seconds of records arrive, over the mean."""
    before = {member: sum(member.done.values()) for member in group.alive}

    def done():
        return [sum(member.done.values()) - count for member, count in before.items()]

    group.wait_until(
        lambda: sum(done()) >= TOTAL * after_s, WAIT_S + after_s, why=f"processing {after_s} seconds of records"
    )
    shares = done()
    return max(shares) / (sum(shares) / len(shares))


@pytest.mark.long
@pytest.mark.parametrize("assignor", ["weighted", "cooperative-weighted"])
def test_steady(broker, topic_name, group_id, assignor):
    """A third member joins, one is killed, and then nothing happens for two minutes."""
    with LiveGroup(broker, topic_name, group_id, assignor=assignor, rates=RATES) as group:
        for client in MIXED[:2]:
            group.join(client)
        group.wait_until(lambda: group.settled(2) and group.lag <= TOTAL, why="joining")
        group.join(MIXED[2])
        group.wait_until(lambda: group.settled(3) and group.lag <= TOTAL, why="joining of the third")
        assert busiest_share(group, after_s=MEASURED_S) <= 1.15 * best_share(3)
        group.members[0].kill()
        group.wait_until(lambda: group.settled(2) and group.lag <= TOTAL, why="taking over")
        assert busiest_share(group, after_s=MEASURED_S) <= 1.15 * best_share(2)
        generation = group.generation
        busiest_share(group, after_s=CALM_S - MEASURED_S)
        assert group.generation == generation
        assert group.load_rebalances() == 0


@pytest.mark.parametrize("assignor", ["weighted", "cooperative-weighted"])
def test_restart(broker, topic_name, group_id, assignor):
    """All members are replaced, one after the other: nothing stays behind, and nobody asks for a rebalance."""
    with LiveGroup(broker, topic_name, group_id, assignor=assignor, rates=RATES) as group:
        for client in MIXED:
            group.join(client)
        group.wait_until(lambda: group.settled(3) and group.lag <= TOTAL, why="joining")
        for former, client in zip(list(group.members), MIXED, strict=True):
            former.stop()
            group.wait_until(lambda: group.settled(2), why="leaving")
            group.join(client)
            group.wait_until(lambda: group.settled(3), why="joining of its successor")
        group.wait_until(lambda: group.lag <= TOTAL, why="catching up")
        assert busiest_share(group, after_s=MEASURED_S) <= 1.15 * best_share(3)
        assert group.load_rebalances() == 0
