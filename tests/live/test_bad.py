"""Real groups whose offsets cannot be read or are not what they should be, and whose leaders die: they go on."""

import time
import uuid

import pytest
from confluent_kafka import Consumer, TopicPartition
from figures import Figure
from live_group import LiveGroup
from live_scenes import AIOKAFKA, CLIENTS, KAFKA_PYTHON, requests
from topics import grow_topic

pytestmark = [pytest.mark.kafka, pytest.mark.live]

MIXED = CLIENTS["mixed"]
RATES = [50.0] * 12
TOTAL = sum(RATES)
READINGS_S = 20
SHIFTED = 1350.0
"""Records/s, all of them to the partitions of one member, which can process 900."""


def goes_on(group, members=3):
    """Each member owns a part and no backlog stays, for some readings of the offsets."""
    group.wait_until(lambda: group.settled(members) and group.lag <= TOTAL, why="settling")
    before = group.processed
    group.wait_until(lambda: group.processed - before >= READINGS_S * sum(group.arrivals.rates), why="going on")
    group.wait_until(lambda: group.lag <= TOTAL, why="keeping up")
    assert group.load_rebalances() == 0


def all_to_one(group):
    """All records arrive in the partitions of one member from now on; return it and them."""
    unlucky = max(group.alive, key=lambda member: len(member.owned))
    return unlucky, group.overload(unlucky, SHIFTED)


def offsets_that_cannot_be_read(group, error):
    """The broker does not answer the reader, or forbids it to read: partitions are shared out by number."""
    for client in MIXED:
        group.join(client, unreadable=error)
    goes_on(group)
    leader = next(member for member in group.alive if member.leads)
    assert leader.fallbacks
    assert [error in line for line in leader.log if "cannot be read" in line] == [True]


def offsets_that_cannot_be_read_for_a_while(group):
    """A shift in this time is not seen. It is acted on once they can be read again, without any restart."""
    for client in MIXED:
        group.join(client)
    goes_on(group)
    generation = group.generation
    for member in group.members:
        member.toggle_readings()
    group.wait_until(
        lambda: any("cannot be read" in line for member in group.members for line in member.log), why="a warning"
    )
    unlucky, hot = all_to_one(group)
    group.wait_until(lambda: group.lag >= 5_000, why="falling behind")
    assert (group.generation, group.load_rebalances()) == (generation, 0)
    for member in group.members:
        member.toggle_readings()
    began = time.monotonic()
    group.wait_until(lambda: not hot <= set(unlucky.owned) and group.settled(3), why="relief")
    relieved_s = time.monotonic() - began
    group.wait_until(lambda: group.lag <= TOTAL, why="catching up")
    assert len([line for member in group.members for line in member.log if "cannot be read" in line]) == 1
    return [Figure("relief, s", relieved_s, 60), requests(group)]


def commits_beyond_the_end(group):
    """The topic was created again since: consumers begin where `auto.offset.reset` says."""
    with_group = Consumer({"bootstrap.servers": group.servers, "group.id": group.id})
    beyond = [TopicPartition(group.topic, each, 1_000_000) for each in (0, 1)]
    with_group.commit(offsets=beyond, asynchronous=False)
    with_group.close()
    for client in MIXED:
        group.join(client)
    goes_on(group)


def a_topic_that_grows(group):
    """Its new partitions are shared out without a rebalance for the load."""
    for client in MIXED:
        group.join(client)
    goes_on(group)
    grow_topic(group.servers, group.topic, len(RATES) + 3)
    group.arrivals.grow([50.0] * 3)
    goes_on(group)


def clocks_that_jump(group):
    """The wall clocks of all members jump by an hour, to and fro: decisions depend on a monotonic clock."""
    for client in MIXED:
        group.join(client, clock="jumps")
    goes_on(group)


def a_leader_that_is_killed_when_it_has_asked(group, client):
    """The rebalance takes place without it; the next leader has its history, and the group comes to rest."""
    for _ in range(3):
        group.join(client)
    goes_on(group)
    all_to_one(group)
    group.wait_until(lambda: group.load_rebalances() == 1, why="a request for a rebalance")
    next(member for member in group.alive if any("asking for" in line for line in member.log)).kill()
    group.arrivals.rates = list(RATES)
    group.wait_until(lambda: group.settled(2), why="going on without it")
    group.wait_until(lambda: group.lag <= TOTAL, why="catching up")
    return [requests(group)]


def a_member_that_hangs(group):
    """It joins no rebalance before it polls again. So the others go on without one, and the log says why."""
    for client in MIXED:
        group.join(client)
    goes_on(group)
    hanging, generation = group.members[MIXED.index(KAFKA_PYTHON)], group.generation
    hanging.toggle_hanging()

    def warnings():
        return [line for member in group.members for line in member.log if "would wait for a member" in line]

    group.wait_until(warnings, why="a warning")
    others = [number for number in range(len(RATES)) if number not in hanging.owned]

    def theirs():
        done = group.done
        return sum(len(done[number]) for number in others)

    before, enough = theirs(), READINGS_S * sum(RATES[number] for number in others)
    group.wait_until(lambda: theirs() - before >= enough, why="going on of the others")
    assert (group.generation, group.load_rebalances(), len(warnings())) == (generation, 0, 1)
    hanging.toggle_hanging()
    began = time.monotonic()
    group.wait_until(lambda: group.settled(3) and group.lag <= TOTAL, why="catching up")
    caught_up_s = time.monotonic() - began
    return [
        Figure("lag below a second, s", caught_up_s, 60),
        Figure("rebalances requested", group.load_rebalances(), 1),
    ]


CASES = {
    "hanging": (a_member_that_hangs,),
    "unreachable": (offsets_that_cannot_be_read, "KafkaConnectionError"),
    "forbidden": (offsets_that_cannot_be_read, "GroupAuthorizationFailedError"),
    "for-a-while": (offsets_that_cannot_be_read_for_a_while,),
    "beyond-the-end": (commits_beyond_the_end,),
    "growing": (a_topic_that_grows,),
    "clocks": (clocks_that_jump,),
    "kafka-python-leader-killed": (a_leader_that_is_killed_when_it_has_asked, KAFKA_PYTHON),
    "aiokafka-leader-killed": (a_leader_that_is_killed_when_it_has_asked, AIOKAFKA),
}


def play(broker, scene, *about):
    name = f"bad-{uuid.uuid4().hex}"
    with LiveGroup(broker, name, name, rates=RATES, tick_s=0.1, metadata_max_age_ms=5000) as group:
        return scene(group, *about) or []


@pytest.mark.parametrize("name", CASES)
def test_bad(side_by_side, record, name):
    record(side_by_side(play, CASES)[name].result())
