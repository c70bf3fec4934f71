"""Members of a live group balance it by loads that a function of the user's reads."""

import pytest
from confluent_kafka import Producer

from loadwise import LiveSettings, PolledLoad, kafka_python_consumer

HEAVY, LIGHT = 900.0, 100.0
WAYS = {"by topic": lambda topic: {topic: [HEAVY, LIGHT]}, "rows": lambda topic: {(topic, 1): LIGHT, (topic, 0): HEAVY}}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
async def test_a_record_costs_what_the_loads_say(group, topic, client, way, until):
    load = PolledLoad(lambda: WAYS[way](topic), every_s=0.05)
    member = await group.join(client, topic, auto_offset_reset="earliest", lag_interval_s=0.05, load=load)
    producer = Producer({"bootstrap.servers": group.settings["bootstrap_servers"]})
    leader = member.consumer._plan.participant.leader

    def loads():
        for partition in (0, 1):
            producer.produce(topic, b"x", partition=partition)
        producer.flush()
        snapshot = leader.snapshot([topic])
        return [] if snapshot is None else list(snapshot.load.get(topic, []))

    def differ():
        now = loads()
        return len(now) > 1 and now[1] > 0 and now[0] / now[1] > HEAVY / LIGHT / 2

    await until(differ)
    assert member.consumer.live is not None


async def test_without_rebalances_for_the_load_the_loads_count_at_joins(group, topic, until):
    load = PolledLoad(lambda: {topic: [HEAVY, LIGHT]})
    member = await group.join("kafka-python", topic, load=load, live=False)
    await until(lambda: load._background.newest is not None)
    assert member.consumer.load is load


def test_costs_that_would_not_count_are_refused():
    with pytest.raises(ValueError, match="cost=…"):
        kafka_python_consumer("t", group_id="g", live=LiveSettings(cost={"t": 2.0}), load=PolledLoad(dict))
