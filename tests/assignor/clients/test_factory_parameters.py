"""What a factory's consumer is told beside a name: parameters of the algorithm, and what its load is made of."""

import pytest
from kafka import KafkaProducer

from loadwise import confluent_consumer
from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.clients.kafka_python import planned
from loadwise.assignor.load.mix import MixedLoad
from loadwise.assignor.load.source import FixedLoad
from loadwise.assignor.strategy import Cooperative


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
async def test_a_load_made_of_the_lag(group, coordinator, topic, client):
    """The lag that the consumer reads is one of the two resources: each of the two heavy partitions has one of them."""
    producer = KafkaProducer(bootstrap_servers=coordinator.bootstrap_servers)
    for _ in range(40):
        producer.send(topic, b"x", partition=2)
    producer.close()

    def mixed(lag):
        cpu = FixedLoad(load={topic: [0, 0, 0, 0, 0, 9.0]})
        return MixedLoad(sources={"lag": lag, "cpu": cpu}, weights={"cpu": 3.0})

    settings = {"auto_offset_reset": "earliest", "lag_interval_s": 0.2, "load": mixed}
    leader = await group.join(client, topic, assignor=Weighted(epsilon=0.0, trigger=0.0), **settings)
    await group.settle(6)
    await group.join(client, topic, assignor=Weighted(epsilon=0.0, trigger=0.0), **settings)
    first, second = await group.settle(6)
    assert ((topic, 2) in first) != ((topic, 2) in second)
    assert ((topic, 5) in first) == ((topic, 2) in second)
    member = leader.consumer
    assert member.rebalances.fallbacks == 0
    assert member.load.snapshot([topic]).load[topic].tolist() == [0, 0, 1.0, 0, 0, 3.0]


async def test_a_cooperative_group_with_parameters(group, topic):
    """A newcomer gets enough for the floor that was asked for; with the default it would get three of six."""
    load = FixedLoad(load={topic: [1.0] * 6})
    tuned = {"assignor": Cooperative(Weighted(trigger=9.0, floor=0.3)), "load": load}
    first = await group.join("kafka-python", topic, **tuned)
    [alone] = await group.settle(6)
    second = await group.join("kafka-python", topic, **tuned)
    kept, given_on = await group.settle(6, [5, 1])
    assert kept == alone - given_on
    assert first.consumer.assignor.name == second.consumer.assignor.name == "cooperative-weighted"


@pytest.mark.parametrize(
    ("auto_commit", "interval_ms", "configured_s", "learned"),
    [(True, 60_000, 61.0, False), (True, None, 6.0, False), (False, None, 6.0, True), (False, 60_000, 6.0, True)],
)
def test_a_leader_knows_how_often_its_client_commits(auto_commit, interval_ms, configured_s, learned):
    given = {"enable_auto_commit": auto_commit} | (
        {} if interval_ms is None else {"auto_commit_interval_ms": interval_ms}
    )
    librdkafka = {name.replace("_ms", ".ms").replace("_", "."): str(value).lower() for name, value in given.items()}
    consumer = confluent_consumer({"bootstrap.servers": "localhost:1", "group.id": "g", "log_level": 0, **librdkafka})
    consumer.close()
    for plan in (planned({"group_id": "g", **given}), consumer._plan):
        commits = plan.participant.leader._watch.knowledge.commits
        assert (commits.least_s, commits.by_hand) == (configured_s, learned)
    assert consumer._plan.config["enable_auto_commit"] is False, "its member commits nothing by itself"
