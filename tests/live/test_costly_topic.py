"""A real group that reads two topics, of which one has records that take ten times as long: nobody tells it so."""

import re

import pytest
from live_group import LiveGroup
from topics import WAIT_S

pytestmark = [pytest.mark.kafka, pytest.mark.live]

CHEAP, COSTLY, COST = [75.0] * 12, [45.0] * 2, 10
WORK_PER_S = sum(CHEAP) + COST * sum(COSTLY)
SPEED = 1400.0
MEASURED_S = 15
TWO_MINUTES_S = 120.0
GROUPS = [
    pytest.param(("kafka-python",) * 3, "weighted", id="kafka-python", marks=pytest.mark.long),
    pytest.param(("aiokafka",) * 3, "cooperative-weighted", id="aiokafka-cooperative", marks=pytest.mark.long),
    pytest.param(("aiokafka", "kafka-python", "aiokafka"), "weighted", id="mixed"),
]


def learned(group):
    """How many times as much a costly record costs, by a line of a log that tells it; 0 before there is one."""
    line = re.compile(r"What records cost.*: (\S+) (\S+), \1-costly (\S+)")
    told = [line.search(each) for member in group.members for each in member.told]
    return max((float(it[3]) / float(it[2]) for it in told if it), default=0.0)


def work_done(member):
    return sum(count * (1 if number < len(CHEAP) else COST) for number, count in member.done.items())


@pytest.mark.parametrize(("clients", "assignor"), GROUPS)
def test_costly_topic(broker, topic_name, group_id, clients, assignor):
    """Two members learn it. When a third joins, the work is even: by records it would have 0.6 times the mean."""
    with LiveGroup(broker, topic_name, group_id, assignor=assignor, rates=CHEAP, costly_rates=COSTLY) as group:
        for client in clients[:2]:
            group.join(client, speed=SPEED)
        group.wait_until(lambda: group.settled(2), why="joining")
        group.wait_until(lambda: learned(group) > 0, TWO_MINUTES_S, why="learning of the costs")
        assert learned(group) == pytest.approx(COST, rel=0.45)
        group.join(clients[2], speed=SPEED)
        group.wait_until(lambda: group.settled(3) and group.lag <= sum(CHEAP), why="joining of the third")
        before = [work_done(member) for member in group.members]

        def done():
            return [work_done(member) - earlier for member, earlier in zip(group.members, before, strict=True)]

        group.wait_until(lambda: sum(done()) >= MEASURED_S * WORK_PER_S, MEASURED_S + WAIT_S, why="going on")
        assert max(done()) <= 1.15 * sum(done()) / 3
