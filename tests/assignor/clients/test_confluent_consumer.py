"""confluent-kafka's consumer with our assignors: what users call on a ``Consumer``, on both brokers."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from topics import WAIT_S, fill, make_topic

from loadwise.assignor.clients.confluent_kafka import confluent_consumer

PARTITIONS = 6
STRATEGIES = ["weighted", "cooperative-weighted"]


@pytest.fixture
def topic(broker, topic_name):
    make_topic(broker, topic_name, PARTITIONS)
    return topic_name


class Party:
    """Consumers of one group, all polled by the thread of the test."""

    def __init__(self, broker, group_id):
        self.settings = {
            "bootstrap.servers": broker,
            "group.id": group_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 30_000,
            "log_level": 0,
        }
        self.members = []
        self.read = {}
        self.calls = {}

    def join(self, topic, *, strategy="weighted", **settings):
        member = confluent_consumer(self.settings | settings, assignor=strategy)
        self.members.append(member)
        self.read[member], self.calls[member] = [], []

        def noting(name):
            return lambda _, partitions: self.calls[member].append((name, {each.partition for each in partitions}))

        member.subscribe([topic], **{name: noting(name) for name in ("on_assign", "on_revoke", "on_lost")})
        return member

    def until(self, condition):
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, [self.owned(member) for member in self.members]
            for member in self.members:
                message = member.poll(0.02)
                if message is not None:
                    assert message.error() is None
                    self.read[member].append((message.partition(), message.offset()))

    def owned(self, member):
        return {each.partition for each in member.assignment()}

    def settle(self, *counts):
        """Wait until the members own so many partitions, none of them twice."""

        def settled():
            owned = [self.owned(member) for member in self.members]
            return [len(each) for each in owned] == list(counts) and len(set().union(*owned)) == sum(counts)

        self.until(settled)
        return [self.owned(member) for member in self.members]

    def leave(self, member):
        self.members.remove(member)
        member.close()


@pytest.fixture
def party(broker, group_id):
    everybody = Party(broker, group_id)
    yield everybody
    for member in everybody.members:
        member.close()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_members_share_the_topic_and_take_over_from_each_other(broker, topic, party, strategy):
    fill(broker, topic, [5] * PARTITIONS)
    first = party.join(topic, strategy=strategy)
    assert isinstance(first, Consumer)
    party.until(lambda: len(party.read[first]) == 5 * PARTITIONS)
    first.commit(asynchronous=False)
    second = party.join(topic, strategy=strategy)
    kept, moved = party.settle(3, 3)
    assert ("on_assign", moved) in party.calls[second]
    revoked = [partitions for name, partitions in party.calls[first] if name == "on_revoke"]
    assert revoked == [moved if strategy.startswith("cooperative") else kept | moved]
    party.leave(second)
    party.settle(PARTITIONS)
    party.until(lambda: first.committed([TopicPartition(topic, 0)], timeout=WAIT_S)[0].offset == 5)
    assert len(party.read[first]) == 5 * PARTITIONS, "nothing is read twice"
    assert party.read[second] == []


def test_a_commit_of_what_is_not_owned_is_dropped_and_reported(broker, topic, party):
    fill(broker, topic, [5] * PARTITIONS)
    reports = []
    first = party.join(topic, on_commit=lambda error, partitions: reports.append((error, partitions)))
    party.settle(PARTITIONS)
    second = party.join(topic)
    owned, others = party.settle(3, 3)
    mine, theirs = TopicPartition(topic, min(owned), 3), TopicPartition(topic, min(others), 4)

    with pytest.raises(KafkaException) as told:
        first.commit(offsets=[mine, theirs], asynchronous=False)
    assert told.value.args[0].code() == KafkaError._ASSIGNMENT_LOST
    assert f"{topic} [{theirs.partition}] @ 4" in told.value.args[0].str()
    first.commit(offsets=[theirs])
    party.until(lambda: reports)
    [(error, [named])] = reports
    assert error.code() == KafkaError._ASSIGNMENT_LOST
    assert (named.partition, named.offset) == (theirs.partition, 4)
    committed = second.committed([mine, theirs], timeout=WAIT_S)
    assert [each.offset for each in committed] == [3, -1001]


def test_what_is_stored_is_committed_when_partitions_go(broker, topic, party):
    fill(broker, topic, [5] * PARTITIONS)
    settings = {"enable.auto.commit": True, "auto.commit.interval.ms": 1000 * int(WAIT_S)}
    first = party.join(topic, **settings)
    party.until(lambda: len(party.read[first]) == 5 * PARTITIONS)
    second = party.join(topic, **settings)
    party.settle(3, 3)
    party.leave(first)
    party.settle(PARTITIONS)
    everything = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    assert [each.offset for each in second.committed(everything, timeout=WAIT_S)] == [5] * PARTITIONS
    assert party.read[second] == []
