"""A real group that reads two topics, of which one has records that take ten times as long: nobody tells it so."""

import re
import time

import pytest
from live_group import LiveGroup
from live_scenes import MINUTE_S
from topics import WAIT_S

pytestmark = [pytest.mark.kafka, pytest.mark.live]

CHEAP, COSTLY, COST = [75.0] * 12, [15.0] * 6, 10
WORK_PER_S = sum(CHEAP) + COST * sum(COSTLY)
MEASURED_S = 15
TWO_MINUTES_S = 120.0
GROUPS = [
    pytest.param(("kafka-python",) * 3, "weighted", id="kafka-python", marks=pytest.mark.long),
    pytest.param(("aiokafka",) * 3, "cooperative-weighted", id="aiokafka-cooperative", marks=pytest.mark.long),
    pytest.param(("aiokafka", "kafka-python", "aiokafka"), "weighted", id="mixed"),
]


def learned(group):
    """How many times as much a costly record costs, by the newest line of a log that tells it; 0 before that."""
    told = [
        re.search(r"What records cost.*: (\S+) (\S+), \1-costly (\S+)", line)
        for each in group.members
        for line in each.told
    ]
    return max((float(it[3]) / float(it[2]) for it in told if it), default=0.0)


def work_done(member):
    return sum(count * (1 if number < len(CHEAP) else COST) for number, count in member.done.items())


@pytest.mark.parametrize(("clients", "assignor"), GROUPS)
def test_costly_topic(broker, topic_name, group_id, clients, assignor):
    """All costly records come to one member, which has a third more to do than it can. The work is even soon after."""
    with LiveGroup(broker, topic_name, group_id, assignor=assignor, rates=CHEAP, costly_rates=COSTLY) as group:
        for client in clients:
            group.join(client)
        group.wait_until(lambda: group.settled(3), why="joining")
        group.wait_until(lambda: learned(group) > 0, TWO_MINUTES_S, why="learning of the costs")
        assert learned(group) == pytest.approx(COST, rel=0.45)
        group.wait_until(lambda: group.lag <= sum(CHEAP), why="catching up")
        began, generation, asked = time.monotonic(), group.generation, group.load_rebalances()
        busy = max(group.members, key=lambda member: sum(number >= len(CHEAP) for number in member.owned))
        hot = {number for number in busy.owned if number >= len(CHEAP)}
        group.arrivals.rates[len(CHEAP) :] = [
            sum(COSTLY) / len(hot) if number in hot else 0.0 for number in range(len(CHEAP), len(CHEAP) + len(COSTLY))
        ]
        group.wait_until(lambda: group.load_rebalances() > asked, MINUTE_S, why="a request for a rebalance")
        group.wait_until(lambda: group.settled(3) and not hot.issubset(busy.owned), MINUTE_S, why="sharing")
        group.wait_until(
            lambda: group.lag <= sum(CHEAP), MINUTE_S - (time.monotonic() - began), why="catching up again"
        )
        assert group.generation - generation <= (3 if assignor == "weighted" else 4)
        before = [work_done(member) for member in group.members]

        def done():
            return [work_done(member) - earlier for member, earlier in zip(group.members, before, strict=True)]

        group.wait_until(lambda: sum(done()) >= MEASURED_S * WORK_PER_S, MEASURED_S + WAIT_S, why="going on")
        assert max(done()) <= 1.15 * sum(done()) / 3
