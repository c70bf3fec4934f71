"""The same heartbeats of consumer groups (KIP-848) to Apache Kafka and to ours: error codes, epochs, assignments."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from beside_kafka import Scenario, scenarios, sessions_agree
from consumer_session import ConsumerSession, protocols, synced
from topics import WAIT_S, until

from loadwise.coordinator import ThreadedCoordinator

pytestmark = pytest.mark.kafka

REBALANCE_IN_PROGRESS = 27


def what_a_first_heartbeat_needs(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 3)
    yield broker.join_as("", "t")
    yield broker.join_as("a", "t", group_id="")
    yield broker.join_as("a", "t", group_id="  ")
    yield broker.join_as("a", "t", instance_id="")
    yield broker.join_as("a", "t", rack_id="")
    yield broker.join_as("a", "t", rebalance_timeout_ms=-1)
    yield broker.join_as("a", "t", topic_partitions=None)
    yield broker.join_as("a", subscribed_topic_names=None)
    yield broker.join_as("a", "t", server_assignor="best")
    yield broker.beat_as("a", 0)
    yield broker.beat_as("a", 1)
    yield broker.beat_as("a", -1)
    yield broker.beat_as("a", -2)
    yield broker.beat_as("a", -2, instance_id="i")
    yield broker.beat_as("a", -3)
    yield broker.describe_as_consumer_group()[0][:1]
    yield broker.join_as("a", "none")
    yield broker.join_as("b")
    yield broker.describe_as_consumer_group()


def members_come_and_go(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 4)
    yield broker.join_as("a", "t")
    yield broker.beat_as("a", 1)
    yield broker.beat_as("a", 1, owned=True)
    yield broker.describe_as_consumer_group()
    yield broker.join_as("b", "t")
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("b", 2, owned=True)
    yield broker.beat_as("a", 1)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 1)
    yield broker.beat_as("b", 2)
    yield broker.beat_as("a", 1, owned=[("t", [0, 1, 2, 3])])
    yield broker.beat_as("a", 1, owned=True)
    yield broker.beat_as("b", 2)
    yield broker.beat_as("b", 2, owned=True)
    yield broker.describe_as_consumer_group()
    yield broker.listed()
    yield [broker.listed("consumer"), broker.listed("classic")]
    yield broker.describe()
    yield broker.beat_as("b", -1)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 2)
    yield broker.beat_as("b", 2)
    yield broker.delete()
    yield broker.beat_as("a", -1)
    yield broker.describe_as_consumer_group()
    yield broker.listed()
    yield broker.join_as("c", "t")
    yield broker.beat_as("c", -1)
    yield [broker.delete(), broker.delete()]
    yield broker.describe_as_consumer_group()


def a_revocation_that_takes_long(broker: ConsumerSession) -> Iterator[Any]:
    """The target moves on while a member still has to give up."""
    broker.make("t", 6)
    yield broker.join_as("a", "t")
    yield broker.join_as("b", "t")
    yield broker.beat_as("a", 1, owned=True)
    yield broker.join_as("c", "t")
    yield broker.beat_as("a", 1)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 1, owned=True)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 1, owned=True)
    yield broker.beat_as("b", 2)
    yield broker.beat_as("c", 3)
    yield broker.beat_as("a", 3, owned=True)
    yield broker.beat_as("b", 2, owned=True)
    yield broker.beat_as("b", 3, owned=True)
    yield broker.beat_as("c", 3, owned=True)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("b", -1)
    yield broker.beat_as("a", 3)
    yield broker.beat_as("c", 3)
    yield broker.beat_as("c", 3, owned=True)
    yield broker.beat_as("a", 4, owned=True)
    yield broker.describe_as_consumer_group()


def fencing(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 4)
    broker.join_as("a", "t")
    yield [broker.beat_as("a", epoch) for epoch in (2, 1)]
    yield broker.join_as("b", "t")
    yield broker.beat_as("a", 1)
    yield broker.beat_as("a", 1, owned=True)
    yield broker.beat_as("a", 1)
    yield broker.beat_as("a", 1, owned=True)
    yield broker.beat_as("a", 1, owned=[("t", [0])])
    yield broker.beat_as("a", 1, owned=[("t", [0, 3])])
    yield broker.beat_as("a", 0)
    yield broker.join_as("a", "t")
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("x", 2)


def static_members(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 4)
    yield broker.join_as("a", "t", instance_id="i")
    yield broker.join_as("b", "t", instance_id="i")
    yield broker.join_as("a", "t", instance_id="i")
    yield broker.join_as("o", "t")
    yield broker.beat_as("a", 1, instance_id="i")
    yield broker.beat_as("a", 1, owned=True, instance_id="i")
    yield broker.beat_as("o", 2)
    yield broker.beat_as("b", 2, instance_id="i")
    yield broker.beat_as("a", 2, instance_id="j")
    yield broker.beat_as("b", -2, instance_id="i")
    yield broker.beat_as("a", -2, instance_id="i")
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 2, instance_id="i")
    yield broker.commit_as("a", 2, 0)
    yield broker.join_as("b", "t", instance_id="i")
    yield broker.commit_as("b", 2, 0)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 2, instance_id="i")
    yield broker.beat_as("a", 2)
    yield broker.beat_as("b", -2, instance_id="i")
    yield broker.join_as("b", "t", instance_id="i")
    yield broker.beat_as("b", -1, instance_id="i")
    yield broker.describe_as_consumer_group()


def subscriptions_that_change(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 2)
    broker.make("u", 2)
    yield broker.join_as("a", "t")
    yield broker.beat_as("a", 1, subscribed_topic_names=[broker.full("t"), broker.full("u")])
    yield broker.beat_as("a", 2, owned=True)
    yield broker.beat_as("a", 2, subscribed_topic_names=[broker.full("u")])
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 2, owned=True)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 3, subscribed_topic_names=[])
    yield broker.beat_as("a", 3, owned=[])
    yield broker.beat_as("a", 4, rack_id="r", rebalance_timeout_ms=1000)
    yield broker.describe_as_consumer_group()


def topics_that_grow(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 2)
    yield broker.join_as("a", "t", "later")
    broker.grow("t", 3)
    yield until_epoch(broker, "a", 1, 2)
    yield broker.describe_as_consumer_group()
    broker.make("later", 1)
    yield until_epoch(broker, "a", 2, 3)
    yield broker.describe_as_consumer_group()


def until_epoch(broker: ConsumerSession, member: str, epoch: int, wanted: int) -> Any:
    """Heartbeats until the coordinator has heard of a topic."""
    deadline = time.monotonic() + WAIT_S
    while True:
        answer = broker.beat_as(member, epoch)
        if answer[0] or answer[1] == wanted + broker.first:
            return answer
        assert time.monotonic() < deadline, answer


def regular_expressions(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 2)
    for regex in ("(", "a**", "(?=a)", r"(a)\1"):
        yield broker.join_as("a", subscribed_topic_names=None, subscribed_topic_regex=regex)
    broker.join_as("a", subscribed_topic_names=None, subscribed_topic_regex=broker.full(".*"))
    # Kafka resolves the expression in the background: at first it may match nothing.
    deadline = time.monotonic() + WAIT_S
    while broker.describe_as_consumer_group()[0][2] < 2:
        assert time.monotonic() < deadline
        broker.beat_as("a", 0, rebalance_timeout_ms=1000, subscribed_topic_regex=broker.full(".*"), owned=[])
    fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_regex": broker.full(".*"), "owned": []}
    yield broker.beat_as("a", 0, **fields)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 1, subscribed_topic_regex="", subscribed_topic_names=[broker.full("t")])
    yield broker.describe_as_consumer_group()


def committing(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 4)
    yield broker.commit_as("a", 1, 0)
    yield broker.join_as("a", "t")
    yield [broker.commit_as(member, epoch, 0) for member, epoch in (("a", 1), ("a", 2), ("a", 0), ("a", -1), ("x", 1))]
    yield broker.commit_as("a", 1, 0, version=8)
    yield broker.commit_as("", -1, 0)
    yield broker.join_as("b", "t")
    yield broker.beat_as("a", 1)
    yield broker.commit_as("a", 1, 0, 1, 2, 3)
    yield broker.beat_as("a", 1, owned=True)
    yield [broker.commit_as("a", epoch, 0, 1, 2, 3) for epoch in (0, 1, 2, 3)]
    yield broker.beat_as("b", 2)
    yield [broker.commit_as("b", epoch, 0, 1, 2, 3) for epoch in (1, 2)]
    # An epoch from before is good for what a member had then, and has still (KIP-1251): of all partitions, or of none.
    for member in "ab":
        yield [[broker.commit_as(member, epoch, number) for number in range(5)] for epoch in range(4)]
    yield [broker.commit_as("a", 1, 0, 1), broker.commit_as("a", 1, 1, 2), broker.commit_as("a", 1, 2, 9)]
    yield [broker.fetch_as(member, epoch) for member, epoch in (("a", 2), ("a", 1), ("x", 2), (None, -1), ("a", -1))]
    broker.beat_as("a", -1)
    broker.beat_as("b", -1)
    yield [broker.commit_as("", -1, 0), broker.commit_as("a", 2, 0)]
    yield [broker.fetch_as("a", 2), broker.fetch_as(None, -1)]


def classic_members_beside_consumers(broker: ConsumerSession) -> Iterator[Any]:
    """The consumer's id sorts before any that a broker makes, so that range gives it the first partitions."""
    broker.make("t", 4)
    yield broker.join_as("!a", "t")
    yield broker.join(protocols=protocols(broker), protocol_type="connect")
    yield broker.join(protocols=protocols(broker))
    yield broker.join(0, protocols=protocols(broker))
    yield broker.describe_as_consumer_group()[0]
    yield [broker.beat(0, 2), broker.beat(0, 1), broker.beat("!a", 1), broker.beat("x", 2), broker.beat(0, 2, "i")]
    yield [synced(broker, 0, 1), synced(broker, 0, 2, protocol_name="other"), synced(broker, 0, 2)]
    yield broker.beat_as("!a", 1)
    yield broker.beat_as("!a", 1, owned=True)
    yield broker.beat(0, 2)
    yield broker.join(0, protocols=protocols(broker))
    yield synced(broker, 0, 2)
    yield broker.beat(0, 2)
    yield broker.join("x", protocols=protocols(broker, "other"))
    yield broker.join("x", protocols=protocols(broker), instance="i")
    yield [broker.commit_as(broker.ids[0], epoch, 0, version=8) for epoch in (2, 1, 3)]
    yield broker.leave((0, None), ("x", None), ("", "i"))
    yield broker.describe_as_consumer_group()[0]
    yield broker.beat(0, 2)
    yield broker.leave(("!a", None))
    yield broker.describe_as_consumer_group()


def a_classic_group_that_is_upgraded_and_downgraded(broker: ConsumerSession) -> Iterator[Any]:
    broker.first = 0  # a classic group begins at 0, and a consumer group goes on from its generation
    broker.make("t", 4)
    broker.join(protocols=protocols(broker))
    yield broker.join(0, protocols=protocols(broker))
    yield synced(broker, 0, 1, [0, 1, 2, 3])
    yield broker.beat_as("a", 1)
    yield broker.beat_as("a", -1)
    yield broker.listed()
    yield broker.join_as("a", "t")
    yield broker.listed()
    yield broker.describe_as_consumer_group()[0]
    yield broker.beat(0, 1)
    yield broker.join(0, protocols=protocols(broker, owned=[0, 1, 2, 3]))
    given = synced(broker, 0, 1)
    yield given
    yield broker.beat(0, 1)
    yield broker.beat_as("a", 2)
    yield broker.join(0, protocols=protocols(broker, owned=given[-1]))
    yield synced(broker, 0, 2)
    yield broker.beat(0, 2)
    yield broker.beat_as("a", 2)
    yield broker.beat_as("a", -1)
    yield broker.listed()
    yield broker.describe()[:4]
    yield broker.beat(0, 2)
    yield broker.join(0, protocols=protocols(broker))
    yield synced(broker, 0, 3, [0, 1, 2, 3])
    yield broker.beat(0, 3)
    yield broker.leave((0, None))
    yield broker.join_as("b", "t")
    yield broker.listed()
    yield broker.beat_as("b", -1)
    yield broker.join(protocols=protocols(broker))
    yield broker.join(1, protocols=protocols(broker))
    yield broker.listed()


def an_upgrade_while_a_member_waits(broker: ConsumerSession, *names: str) -> Iterator[Any]:
    """The member that waits in a rebalance is sent to join again, whether the group can be upgraded or not."""
    broker.make("t", 4)
    offered = [each for name in ("range", "other") for each in protocols(broker, name)]
    generation = broker.join(protocols=offered, version=3)[1] - broker.first
    yield synced(broker, 0, generation, [0, 1, 2, 3])
    waiting = ConsumerSession(f"{broker.socket.getpeername()[0]}:{broker.socket.getpeername()[1]}")
    waiting.group = broker.group
    with closing(waiting), ThreadPoolExecutor(1) as pool:
        joined = pool.submit(lambda: waiting.join(protocols=protocols(broker, *names), version=3)[:2])
        until(lambda: broker.beat(0, generation) == REBALANCE_IN_PROGRESS)
        yield broker.join_as("a", "t")[0]
        yield joined.result(timeout=WAIT_S)
    yield broker.listed()


def an_upgrade_while_a_member_waits_that_lacks_the_protocol(broker: ConsumerSession) -> Iterator[Any]:
    """Its request fails in Kafka with an exception, whose code the new member gets."""
    yield from an_upgrade_while_a_member_waits(broker, "other")


def a_static_member_that_changes_its_protocol(broker: ConsumerSession) -> Iterator[Any]:
    broker.first = 0  # a classic group begins at 0, and a consumer group goes on from its generation
    broker.make("t", 2)
    yield broker.join(protocols=protocols(broker), instance="i")
    yield synced(broker, 0, 1, [0, 1], instance="i")
    yield broker.join_as("a", "t", instance_id="i")
    yield broker.describe_as_consumer_group()
    yield broker.beat(0, 1, "i")
    yield broker.join(protocols=protocols(broker), instance="i")
    yield broker.listed()
    yield synced(broker, 1, 1, instance="i")
    yield broker.beat_as("a", 1, instance_id="i")
    yield broker.beat(1, 1, "i")


def a_static_classic_member_that_restarts_and_still_owns_partitions(broker: ConsumerSession) -> Iterator[Any]:
    """What it must give up is free only after it has."""
    broker.first = 0
    broker.make("t", 4)
    yield broker.join(protocols=protocols(broker), instance="i")
    yield synced(broker, 0, 1, [0, 1, 2, 3], instance="i")
    yield broker.join_as("a", "t")
    yield broker.join(protocols=protocols(broker, owned=[0, 1, 2, 3]), instance="i")
    given = synced(broker, 1, 0, instance="i")
    yield given
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 2)
    yield broker.beat(1, 0, "i")
    yield broker.join(1, protocols=protocols(broker, owned=given[-1]), instance="i")
    yield synced(broker, 1, 2, instance="i")
    yield broker.beat_as("a", 2)
    yield broker.describe_as_consumer_group()


def configs_of_its_own(broker: ConsumerSession) -> Iterator[Any]:
    """Kafka takes them in some time after its answer, also in a group that is there already."""
    broker.make("t", 1)
    yield broker.join_as("a", "t")

    def configured(**configs: str | None) -> dict[str, int]:
        own = {f"consumer.{name.replace('_', '.')}": value for name, value in configs.items()}
        return {"ours": broker.alter_groups({broker.group: own})[broker.group]}

    yield configured(heartbeat_interval_ms="6500"), configured(assignment_interval_ms="7000")
    until(lambda: broker.beat_as("a", 1)[-1] == 6500, lambda: broker.beat_as("a", 1))
    yield broker.beat_as("a", 1)
    yield [configured(heartbeat_interval_ms=each) for each in ("15001", "0", "x")]
    yield [configured(session_timeout_ms=each) for each in ("60001", "60000")]
    yield configured(heartbeat_interval_ms=None)
    until(lambda: broker.beat_as("a", 1)[-1] == 500, lambda: broker.beat_as("a", 1))


@scenarios(
    configs_of_its_own,
    what_a_first_heartbeat_needs,
    members_come_and_go,
    a_revocation_that_takes_long,
    fencing,
    static_members,
    subscriptions_that_change,
    topics_that_grow,
    regular_expressions,
    committing,
    classic_members_beside_consumers,
    a_classic_group_that_is_upgraded_and_downgraded,
    an_upgrade_while_a_member_waits,
    an_upgrade_while_a_member_waits_that_lacks_the_protocol,
    a_static_member_that_changes_its_protocol,
    a_static_classic_member_that_restarts_and_still_owns_partitions,
)
def test_ours_answers_as_kafka_does(apache_kafka: str, coordinator: ThreadedCoordinator, scenario: Scenario) -> None:
    sessions_agree(scenario, ConsumerSession, apache_kafka, coordinator.bootstrap_servers)
