"""Real groups whose offsets cannot be read, or are not what they should be: they go on as if nothing were."""

import pytest
from confluent_kafka import Consumer, TopicPartition
from live_group import LiveGroup
from topics import grow_topic

pytestmark = [pytest.mark.kafka, pytest.mark.live]

MIXED = ("aiokafka", "kafka-python", "aiokafka")
RATES = [50.0] * 12
TOTAL = sum(RATES)
READINGS_S = 20


def goes_on(group, members=3):
    """Everybody owns a part and nothing stays behind, for some readings of the offsets."""
    group.wait_until(lambda: group.settled(members) and group.lag <= TOTAL, why="settling")
    before = sum(group.done.values())
    group.wait_until(
        lambda: sum(group.done.values()) - before >= READINGS_S * sum(group.arrivals.rates), why="going on"
    )
    group.wait_until(lambda: group.lag <= TOTAL, why="keeping up")
    assert group.load_rebalances() == 0


@pytest.mark.parametrize("error", ["KafkaConnectionError", "GroupAuthorizationFailedError"])
def test_offsets_that_cannot_be_read(broker, topic_name, group_id, error):
    """The broker does not answer the reader, or forbids it to read: partitions are shared out by number."""
    with LiveGroup(broker, topic_name, group_id, rates=RATES) as group:
        for client in MIXED:
            group.join(client, unreadable=error)
        goes_on(group)
        leader = next(member for member in group.alive if member.leads)
        assert leader.fallbacks
        assert [error in line for line in leader.told if "cannot be read" in line] == [True]


def test_commits_beyond_the_end(broker, topic_name, group_id):
    """The topic was made again since: consumers begin anew where their own setting tells them."""
    with LiveGroup(broker, topic_name, group_id, rates=RATES) as group:
        with_group = Consumer({"bootstrap.servers": broker, "group.id": group_id})
        with_group.commit(offsets=[TopicPartition(topic_name, each, 1_000_000) for each in (0, 1)], asynchronous=False)
        with_group.close()
        for client in MIXED:
            group.join(client)
        goes_on(group)


def test_a_topic_that_grows(broker, topic_name, group_id):
    """Its new partitions are shared out without a rebalance for the load."""
    with LiveGroup(broker, topic_name, group_id, rates=RATES, metadata_max_age_ms=1000) as group:
        for client in MIXED:
            group.join(client)
        goes_on(group)
        grow_topic(broker, topic_name, len(RATES) + 3)
        group.arrivals.grow([50.0] * 3)
        goes_on(group)


def test_clocks_that_jump(broker, topic_name, group_id):
    """The wall clocks of all members jump by an hour, to and fro: what is decided goes by the time that passes."""
    with LiveGroup(broker, topic_name, group_id, rates=RATES) as group:
        for client in MIXED:
            group.join(client, clock="jumps")
        goes_on(group)
