"""Groups in which our assignors sit beside Java's and librdkafka's, against both brokers."""

from __future__ import annotations

import itertools

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

pytestmark = pytest.mark.kafka

PARTITIONS = 12
RECORDS = 1_200
EAGER = ("kafka-python", "aiokafka", "java", "confluent-kafka")
COOPERATIVE = ("kafka-python", "java", "confluent-kafka")
CASES = [(strategy, leader) for strategy in ("range", "roundrobin") for leader in EAGER] + [
    ("cooperative-sticky", leader) for leader in COOPERATIVE
]

_numbers = itertools.count(1)


@pytest.fixture
def topic(broker):
    name = f"mixed-{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": broker, "log_level": 0})
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1)]).values():
        made.result(30)
    return name


def _produce(broker, topic):
    producer = Producer({"bootstrap.servers": broker, "log_level": 0})
    for number in range(RECORDS):
        producer.produce(topic, key=str(number), value=b"x")
    assert producer.flush(30) == 0


def _missing(members):
    """How many of the offsets below the highest one seen in each partition nobody has processed."""
    offsets = {}
    for member in members:
        for partition, start, stop in member.processed:
            offsets.setdefault(partition, set()).update(range(start, stop))
    return sum(max(seen) + 1 - len(seen) for seen in offsets.values()), sum(map(len, offsets.values()))


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("strategy", "leader"), CASES, ids=lambda value: value)
def test_every_partition_has_one_owner_and_every_record_is_processed(  # noqa: PLR0917 (fixtures)
    broker, topic, join, eventually, strategy, leader
):
    clients = COOPERATIVE if strategy == "cooperative-sticky" else EAGER
    group = f"group-of-{topic}"
    all_partitions = frozenset(range(PARTITIONS))
    everybody = []

    def is_shared_by(*members):
        owned = [member.owned for member in members]
        return all(owned) and frozenset().union(*owned) == all_partitions and sum(map(len, owned)) == PARTITIONS

    _produce(broker, topic)
    first = join(leader, group, topic, strategy)  # alone, so it leads
    everybody.append(first)
    eventually(lambda: is_shared_by(first), everybody)

    others = [join(client, group, topic, strategy) for client in clients if client != leader]
    everybody += others
    eventually(lambda: is_shared_by(first, *others), everybody)
    _produce(broker, topic)

    others[0].crash()
    eventually(lambda: is_shared_by(first, *others[1:]), everybody)
    others[1].leave()
    eventually(lambda: is_shared_by(first, *others[2:]), everybody)
    back = join(others[0].client, group, topic, strategy)
    everybody.append(back)
    eventually(lambda: is_shared_by(first, *others[2:], back), everybody)

    eventually(lambda: _missing(everybody) == (0, 2 * RECORDS), everybody)
