"""Each client beside another one: joins, leaves, crashes, comes back, moves, is fenced, changes its strategy."""

from __future__ import annotations

import signal

import pytest
from client_matrix import CLIENTS
from confluent_kafka import Consumer, TopicPartition
from live_group import LiveGroup
from live_scenes import DRIFT_RATES, drift
from topics import WAIT_S

pytestmark = pytest.mark.kafka

PARTITIONS = 6
SESSION_MS, SHORT_SESSION_MS = 60_000, 6_000
OURS = [client for client in CLIENTS if client != "java"]


@pytest.fixture
def members(topic, join, eventually, production):
    return Members(topic, join, eventually, production)


@pytest.fixture
def show(request, matrix):
    """``show(client, *columns)``: it has been seen on this broker."""
    return lambda client, *columns: matrix.update(
        (client, column, request.node.callspec.params["broker"]) for column in columns
    )


class Members:
    """The members of one group, and the records that are produced for it."""

    def __init__(self, topic, join, eventually, production):
        self._topic, self._join, self._eventually, self._production = topic, join, eventually, production
        self.everybody = []

    @property
    def group(self):
        return f"group-of-{self._topic}"

    def join(self, client, strategy=None, session_timeout_ms=SESSION_MS, instance_id=None):
        how = strategy or "weighted"
        self.everybody.append(self._join(client, self.group, self._topic, how, session_timeout_ms, instance_id))
        return self.everybody[-1]

    def until(self, condition):
        self._eventually(condition, self.everybody)

    def settle(self, *members):
        """Wait until these own every partition once, and some each."""

        def settled():
            owned = [partition for member in members for partition in member.owned]
            return sorted(owned) == list(range(PARTITIONS)) and all(member.owned for member in members)

        self.until(settled)

    def all_is_processed(self):
        """Stop producing, and wait until everything that was produced was processed by somebody."""
        produced = self._production.stop()
        assert produced
        self.until(lambda: produced <= set().union(*(member.processed for member in self.everybody)))


def partner(client):
    return "confluent-consumer" if client == "kafka-python" else "kafka-python"


def strategy(client):
    return "range" if client == "java" else "weighted"


@pytest.mark.parametrize("client", CLIENTS)
def test_joins_and_leaves(members, show, client):
    other = members.join(partner(client), strategy(client))
    members.settle(other)
    tried = members.join(client, strategy(client))
    members.settle(other, tried)
    tried.leave()
    members.settle(other)
    leads = members.join(client, strategy(client))
    members.settle(other, leads)
    other.leave()
    members.settle(leads)
    members.all_is_processed()
    show(client, "join", "leave")


@pytest.mark.parametrize("client", CLIENTS)
def test_crashes(members, show, client):
    other = members.join(partner(client), strategy(client))
    tried = members.join(client, strategy(client), SHORT_SESSION_MS)
    members.settle(other, tried)
    tried.crash()
    members.settle(other)
    members.all_is_processed()
    show(client, "crash")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_static_member_comes_back(members, show, client):
    other = members.join(partner(client), strategy(client), instance_id="other")
    tried = members.join(client, strategy(client), instance_id="tried")
    members.settle(other, tried)
    had, generation = tried.owned, other.generation
    tried.leave()
    back = members.join(client, strategy(client), instance_id="tried")
    members.until(lambda: back.owned == had)
    members.all_is_processed()
    assert other.generation == generation
    show(client, "static restart")


@pytest.mark.parametrize("client", CLIENTS)
def test_keeps_what_it_keeps_while_the_rest_moves(members, show, client):
    tried = members.join(client, "cooperative-sticky")
    members.settle(tried)
    before = len(tried.held)
    other = members.join(partner(client), "cooperative-sticky")
    members.settle(tried, other)
    assert all(held >= tried.owned for held in tried.held[before:])
    members.all_is_processed()
    show(client, "cooperative move")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_zombie_moves_no_offset_back(members, show, broker, topic, client):
    other = members.join(partner(client), strategy(client))
    tried = members.join(client, strategy(client), SHORT_SESSION_MS)
    members.settle(other, tried)
    theirs = [TopicPartition(topic, partition) for partition in tried.owned]
    asking = Consumer({"bootstrap.servers": broker, "group.id": members.group, "log_level": 0})

    def committed():
        return [each.offset for each in asking.committed(theirs, timeout=WAIT_S)]

    members.until(lambda: all(offset > 0 for offset in committed()))
    tried.process.send_signal(signal.SIGSTOP)
    members.settle(other)
    first = committed()
    members.until(lambda: all(now > then for now, then in zip(committed(), first, strict=True)))
    then = committed()
    tried.process.send_signal(signal.SIGCONT)

    def is_back():
        now = committed()
        assert all(a >= b for a, b in zip(now, then, strict=True)), "a zombie has moved an offset back"
        then[:] = now
        owned = sorted(tried.owned | other.owned)
        return (
            owned == list(range(PARTITIONS)) and not tried.owned & other.owned and other.generation == tried.generation
        )

    members.until(is_back)
    asking.close()
    members.all_is_processed()
    show(client, "commit fencing")


@pytest.mark.parametrize("client", OURS)
@pytest.mark.parametrize("way", ["upgrade", "downgrade"])
def test_changes_the_strategy_of_a_running_group(members, show, client, way):
    steps = ["range", "weighted,range", "weighted"]
    first, *rest = steps if way == "upgrade" else reversed(steps)
    group = [members.join(client, first), members.join(partner(client), first)]
    members.settle(*group)
    for step in rest:
        for number, member in enumerate(group):
            member.leave()
            group[number] = members.join(member.client, step)
            members.settle(*group)
    members.all_is_processed()
    show(client, way)


@pytest.mark.live
@pytest.mark.parametrize("client", OURS)
def test_a_load_that_shifts_is_shared_again(broker, topic_name, record, show, client):
    with LiveGroup(broker, topic_name, topic_name, rates=DRIFT_RATES) as group:
        figures = drift(group, (client,) * 3)
    record(figures)
    show(client, "drift")
