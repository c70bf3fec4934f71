"""Each client, as a real program, lives the same life on our coordinator and on Apache Kafka and sees the same."""

from __future__ import annotations

import itertools
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from topics import give_heartbeats_time, make_topic

pytestmark = pytest.mark.kafka

PARTITIONS = 6
SESSION_MS = 6_000
"""The shortest that Apache Kafka grants unless told otherwise."""
CLIENTS = [
    ("kafka-python", "range"),
    ("aiokafka", "range"),
    ("confluent-kafka", "range"),
    ("confluent-kafka", "cooperative-sticky"),
    ("java", "range"),
    ("java", "cooperative-sticky"),
    ("franz-go", "range"),
    ("franz-go", "cooperative-sticky"),
    ("kafkajs", "roundrobin"),
    ("confluent-kafka", "consumer"),
    ("java", "consumer"),
]
STATIC = [each for each in CLIENTS if each not in {("kafkajs", "roundrobin"), ("java", "consumer"), ("java", "range")}]
"""kafkajs knows no static members; more JVMs take their time to say what the others say too."""

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def brokers(coordinator, apache_kafka):
    return {"ours": coordinator.bootstrap_servers, "Apache Kafka": apache_kafka}


def _say(command):
    """Run a program to its end, and answer with the last thing that it said."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    del said["event"]
    return said


def _offsets(*members):
    """The partitions and offsets that these have processed."""
    return {
        (partition, offset)
        for member in members
        for partition, start, stop in member.processed
        for offset in range(start, stop)
    }


class Life:
    """One client's life on one broker: a topic, a group, and what was seen."""

    def __init__(self, client, strategy, broker, program, start):
        self.client = client
        self.strategy = strategy
        self.broker = broker
        self.group = f"life-{next(_numbers)}"
        self.topic = f"{self.group}-topic"
        self.produced = 0
        self._program = program
        self._start = start
        if (client, strategy) == ("confluent-kafka", "consumer"):
            give_heartbeats_time(broker, self.group)
        make_topic(broker, self.topic, PARTITIONS)

    def produce(self, count):
        first, self.produced = self.produced, self.produced + count
        return _say(self._program(self.client, "produce", self.broker, self.topic, first, self.produced))

    def join(self, instance=None):
        more = [] if instance is None else [instance]
        session_ms = SESSION_MS if instance is None else 60_000
        return self._start(self.client, self.broker, self.group, self.topic, self.strategy, session_ms, *more)

    def administrate(self):
        return _say(self._program(self.client, "admin", self.broker, self.group, self.topic))


def _share(*members):
    owned = [member.owned for member in members]
    return sum(map(len, owned)) == PARTITIONS == len(frozenset().union(*owned)) and all(owned)


def _live(life, eventually):
    """Join, share, crash and be replaced, leave, come back: what was seen on the way."""
    seen = [life.produce(60)]
    first = life.join()
    members = [first]
    eventually(lambda: _share(first) and len(_offsets(first)) == 60, members)
    second = life.join()
    members.append(second)
    eventually(lambda: _share(first, second), members)
    seen.append(sorted([len(first.owned), len(second.owned)]))
    seen.append(life.produce(60))
    eventually(lambda: len(_offsets(*members)) == 120, members)
    if life.strategy == "consumer":
        second.leave()  # the brokers decide how long a session is, and take their time
    else:
        second.crash()
    eventually(lambda: _share(first), members)
    first.leave()
    seen.append(life.produce(30))
    third = life.join()
    members.append(third)
    eventually(lambda: len(_offsets(*members)) == 150, members)
    # It resumes where the others were; but what the second one had not committed when it crashed, it may read again.
    seen.append(len(_offsets(third) - _offsets(second)))
    third.leave()
    seen.append(life.administrate())
    return seen


def _restart(life, eventually):
    """A static member leaves and is back before its session ends: it has what it had, and nobody else notices."""
    stays, restarts = life.join("stays"), life.join("restarts")
    members = [stays, restarts]
    eventually(lambda: _share(*members), members)
    had, changes = restarts.owned, stays.changes
    restarts.leave()
    again = life.join("restarts")
    members.append(again)
    eventually(lambda: again.owned and _share(stays, again), members)
    seen = (again.owned == had, stays.changes - changes)
    again.crash()
    stays.crash()
    return seen


def _on_both(brokers, client, program, live):
    """Both lives at the same time: most of a life is waiting."""
    program(client, "produce")  # is built here, since fixtures are made on one thread
    with ThreadPoolExecutor(len(brokers)) as threads:
        lives = {name: threads.submit(live, broker) for name, broker in brokers.items()}
        return {name: life.result() for name, life in lives.items()}


@pytest.mark.parametrize(("client", "strategy"), CLIENTS)
def test_a_client_sees_the_same_on_both_brokers(  # noqa: PLR0917 (fixtures)
    brokers, program, start, eventually, client, strategy
):
    seen = _on_both(
        brokers, client, program, lambda broker: _live(Life(client, strategy, broker, program, start), eventually)
    )
    assert seen["ours"] == seen["Apache Kafka"]
    assert seen["ours"][1] == [PARTITIONS // 2, PARTITIONS // 2]
    assert seen["ours"][-2] == 30


@pytest.mark.parametrize(("client", "strategy"), STATIC)
def test_a_static_member_restarts_without_a_rebalance(  # noqa: PLR0917 (fixtures)
    brokers, program, start, eventually, client, strategy
):
    seen = _on_both(
        brokers, client, program, lambda broker: _restart(Life(client, strategy, broker, program, start), eventually)
    )
    assert seen == {"ours": (True, 0), "Apache Kafka": (True, 0)}
