"""A broker that dies and comes back: a real Apache Kafka of three nodes and ours answer the same, before and after it.

Broker 2 is the one. All exchanges are under way when it is killed, so that it is killed once, and so are clients of
four kinds: they write and read all the time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from client_messages import client_request
from clients_in_trouble import Traffic, who_does_not_try_again
from missing import skipped_where_missing
from record_batches import batch
from sessions import Session
from three_kafkas import NODES, three_kafkas
from topics import WAIT_S, until
from transactors import NOW_MS, Transactor

from loadwise.coordinator import Coordinator
from loadwise.protocol.error_codes import ErrorCode

pytestmark = pytest.mark.kafka

DEAD = 2
TOPICS = {"alone": [2], "two": [1, 2], "from-two": [2, 3], "three": [2, 1, 3]}
"""Where each topic's partition is; two of them need as many replicas in sync as they have."""


TRAFFIC = "traffic"
"""The topic of the clients that write and read all the time."""


class Asker(Transactor):
    """A session with one broker, about a topic and a group that others may have made."""

    def __init__(self, address: str, topic: str = "", group: str = "", transactional_id: str = "") -> None:
        Session.__init__(self, address)
        self.topic, self.group, self.transactional_id = topic, group, transactional_id
        self.producer_ids: list[int] = []

    def make(self, name: str, brokers: list[int] | None = None, replicas: int = -1, **configs: str) -> int:
        """Make a topic of one partition on these brokers, or on as many."""
        placed = {"partition_index": 0, "broker_ids": brokers or []}
        topic = {
            "name": name, "num_partitions": -1 if brokers else 1, "replication_factor": replicas,
            "assignments": [placed] if brokers else [],
            "configs": [{"name": each.replace("_", "."), "value": configs[each]} for each in configs],
        }  # fmt: skip
        return int(self.ask("CreateTopics", 7, topics=[topic], timeout_ms=60_000).topics[0].error_code)

    def cluster(self, *topics: str) -> tuple[list[int], list[tuple[Any, ...]]]:
        """The brokers, and each topic's partition: error, leader, its epoch, ISR and replicas that are gone."""
        rows = [{"name": name} for name in topics]
        answer = self.ask("Metadata", 12, topics=rows, allow_auto_topic_creation=False)
        found = []
        for topic in sorted(answer.topics, key=lambda each: each.name):
            row = [(each.error_code, each.leader_id, each.leader_epoch, sorted(each.isr_nodes), each.offline_replicas)
                   for each in topic.partitions]  # fmt: skip
            found.append((topic.name, topic.error_code, *row))
        return sorted(each.node_id for each in answer.brokers), found

    def eligible(self, *topics: str) -> list[tuple[str, list[int]]]:
        """The replicas of each topic's partition that may lead it though they are not in sync (KIP-966)."""
        rows = [{"name": name} for name in sorted(topics)]
        answer = self.ask("DescribeTopicPartitions", 0, topics=rows)
        return [(each.name, list(each.partitions[0].eligible_leader_replicas or ())) for each in answer.topics]

    def put(self, topic: str, acks: int) -> tuple[int, int]:
        self.topic = topic
        return self.produce(batch([b"x"], timestamp=NOW_MS), acks)

    def get(self, topic: str) -> tuple[int, int, int]:
        """The error of a fetch from the start, the high watermark, and how many bytes came."""
        partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100_000}
        request = client_request(
            "Fetch", 12, cluster_id=None, max_wait_ms=0, min_bytes=1, max_bytes=1_000_000, rack_id="",
            isolation_level=0, topics=[{"topic": topic, "partitions": [partition]}],
        )  # fmt: skip
        (found,) = self.exchange(request).responses[0].partitions
        return found.error_code, found.high_watermark, len(found.records or b"")

    def end_offset(self, topic: str) -> tuple[int, int]:
        self.topic = topic
        return self.offsets(0, 0)

    def coordinator(self, key: str, kind: int = 0) -> tuple[int, int]:
        """The error, and the broker."""
        (found,) = self.ask("FindCoordinator", 4, key_type=kind, coordinator_keys=[key]).coordinators
        return found.error_code, found.node_id


class Nodes:
    """A cluster of three, of which broker 2 can be killed and started again."""

    def __init__(self, addresses: dict[int, str], kill: Callable[[], None], start: Callable[[], None]) -> None:
        self.addresses, self.kill, self.start = addresses, kill, start
        self.stack = contextlib.ExitStack()

    def at(self, node: int, *about: str) -> Asker:
        asker = Asker(self.addresses[node], *about)
        self.stack.callback(asker.close)
        return asker

    def key_of_the_dead(self, kind: int, name: str = "key") -> str:
        """A group, or a transactional id, whose coordinator is broker 2."""
        asker = self.at(1)
        for number in range(100):
            key = f"{name}-{number}"
            error, node = asker.again(lambda key=key: asker.coordinator(key, kind))
            if (error, node) == (0, DEAD):
                return key
        raise AssertionError("broker 2 coordinates nothing")


def partitions(nodes: Nodes) -> Iterator[Any]:
    """What is told of partitions, and who may be written to and read from."""
    for name, brokers in (TOPICS | {TRAFFIC: [2, 3, 1]}).items():
        safe = {"min_insync_replicas": str(len(brokers))} if len(brokers) == 2 else {}
        assert nodes.at(1).make(name, brokers, **safe) == 0
    alive = [nodes.at(node) for node in (1, 3)]
    for each in alive:
        until(
            lambda each=each: all(row[1] == 0 for row in each.cluster(*TOPICS, TRAFFIC)[1]),
            lambda each=each: each.cluster(*TOPICS),
        )

    def told() -> Iterator[Any]:
        for each in alive:
            yield each.cluster(*TOPICS), each.eligible(*TOPICS)
            yield [(name, each.put(name, 1), each.put(name, -1)) for name in TOPICS]
            yield [(name, each.end_offset(name), each.get(name)[0]) for name in TOPICS]
        yield [each.get("two")[1] for each in alive[:1]], [each.get("from-two")[1] for each in alive[1:]]

    yield from told()
    yield "killed"
    yield from told()
    yield (
        alive[0].make("new-on-three", replicas=3),
        alive[0].make("new-on-two", replicas=2),
        alive[0].make("new-on-the-dead", [DEAD]),
    )
    yield "started"
    yield from told()


def a_classic_group(nodes: Nodes) -> Iterator[Any]:
    """A group whose coordinator dies, and comes back: its members go on in their generation."""
    group = nodes.key_of_the_dead(0)
    before = nodes.at(DEAD, "three", group)
    yield before.join(version=3), before.sync(0), before.commit(0, 1), before.beat(0)
    yield "killed"
    alive = {node: nodes.at(node, "three", group) for node in (1, 3)}
    for each in alive.values():
        each.ids = before.ids
    until(lambda: alive[1].coordinator(group)[1] in alive, lambda: alive[1].coordinator(group))
    node = alive[1].coordinator(group)[1]
    new, other = alive.pop(node), alive.popitem()[1]
    yield new.again(lambda: (new.beat(0),)), other.beat(0), new.commit(0, 1), new.describe()[:3], new.beat(0, 2)
    yield "started"
    yield new.coordinator(group) == (0, node), new.beat(0), nodes.at(DEAD, "three", group).describe()[0]


def a_rebalance_under_way(nodes: Nodes) -> Iterator[Any]:
    """A group whose coordinator dies while a member that joins waits for another: the new one knows nothing of it."""
    group = nodes.key_of_the_dead(0, "rebalance")
    first, second = nodes.at(DEAD, "three", group), nodes.at(DEAD, "three", group)
    yield first.join(version=3), first.sync(0)
    waits = threading.Thread(target=_join_in_vain, args=(second,))
    waits.start()
    until(lambda: first.beat(0) == ErrorCode.REBALANCE_IN_PROGRESS, lambda: first.beat(0))
    yield "killed"
    waits.join(WAIT_S)
    alive = nodes.at(1)
    until(lambda: alive.coordinator(group)[1] in (1, 3), lambda: alive.coordinator(group))
    new = nodes.at(alive.coordinator(group)[1], "three", group)
    new.ids = first.ids
    yield new.again(lambda: (new.beat(0),)), new.describe()[:2], new.commit(0, 1), new.beat(0)
    yield "started"
    yield new.beat(0)


def _join_in_vain(asker: Asker) -> None:
    with contextlib.suppress(AssertionError, OSError):  # its broker dies
        asker.join(version=3)


def a_transaction(nodes: Nodes) -> Iterator[Any]:
    """A transaction that is open when its coordinator dies ends at the next one; a producer is fenced there."""
    key = nodes.key_of_the_dead(1)
    nodes.at(1).make("in-transactions", [1, 3, 2])
    writer = nodes.at(1, "in-transactions", "of-transactions", key)
    until(lambda: writer.cluster("in-transactions")[1][0][1] == 0, lambda: writer.cluster("in-transactions"))
    before = nodes.at(DEAD, "in-transactions", "of-transactions", key)
    before.producer_ids = writer.producer_ids
    error, who = before.init(timeout_ms=600_000)
    yield error, writer.write(who), before.described()[:2], writer.read(committed=True)[:3]
    yield "killed"
    alive = {node: nodes.at(node, "in-transactions", "of-transactions", key) for node in (1, 3)}
    until(lambda: alive[1].coordinator(key, 1)[1] in alive, lambda: alive[1].coordinator(key, 1))
    node = alive[1].coordinator(key, 1)[1]
    new, other = alive.pop(node), alive.popitem()[1]
    new.producer_ids = other.producer_ids = writer.producer_ids
    yield new.again(new.described)[:2], writer.write(who, 1), writer.read(committed=True)[:3]
    answer = other.ask("EndTxn", 5, transactional_id=key, producer_id=who[0], producer_epoch=who[1], committed=True)
    yield answer.error_code
    yield new.shown(new.end(who, committed=True)), writer.read(committed=True)[:4], writer.write(who, 2)
    second = new.init(timeout_ms=600_000)[1]
    yield new.shown((0, second)), writer.write(second), new.shown(new.end(second, committed=False))
    yield "started"
    yield new.coordinator(key, 1) == (0, node), new.described()[:2], writer.read(committed=True)[:4]


EXCHANGES = (partitions, a_classic_group, a_rebalance_under_way, a_transaction)


def exchanged(nodes: Nodes) -> dict[str, list[Any]]:
    """What a cluster answers to each exchange, and what clients that write and read meanwhile see."""
    found: dict[str, list[Any]] = {exchange.__name__: [] for exchange in EXCHANGES}
    with nodes.stack:
        running = {exchange.__name__: exchange(nodes) for exchange in EXCHANGES}

        def on(what: str) -> None:
            """Let each exchange go on until it waits for this."""
            for name, answers in running.items():
                for answer in answers:
                    if answer == what:
                        break
                    found[name].append((what, answer))

        on("killed")
        with Traffic(nodes.addresses, TRAFFIC) as traffic:
            traffic.flows()
            nodes.kill()
            asker = nodes.at(1)
            until(lambda: asker.cluster()[0] == [1, 3], asker.cluster)
            until(
                lambda: all(DEAD not in row[2][3] for row in asker.cluster("two", "from-two", "three")[1]),
                lambda: asker.cluster(*TOPICS),
            )
            traffic.flows()
            found["who does not try again"] = who_does_not_try_again(nodes.addresses, "alone", "two", "three")
            on("started")
            nodes.start()
            until(lambda: all(DEAD in row[2][3] for row in asker.cluster(*TOPICS)[1]), lambda: asker.cluster(*TOPICS))
            traffic.flows()
            found["who does not try again"] += who_does_not_try_again(nodes.addresses, "alone", "two")
            on("the end")
        found["who tries again"] = traffic.problems
    return found


@pytest.fixture(scope="module")
def answers() -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Those of Apache Kafka, and ours."""
    with skipped_where_missing(), three_kafkas(missed_soon=True) as kafkas:
        addresses = {node: each.address for node, each in kafkas.items()}
        of_kafka = exchanged(Nodes(addresses, kafkas[DEAD].kill, kafkas[DEAD].start))
    return of_kafka, our_answers()


def our_answers() -> dict[str, list[Any]]:
    with Coordinator(brokers=3).in_thread() as ours:
        addresses = dict(zip(NODES, ours.bootstrap_servers.split(","), strict=True))
        return exchanged(Nodes(addresses, lambda: ours.stop_broker(DEAD), lambda: ours.start_broker(DEAD)))


@pytest.mark.parametrize(
    "exchange", [*(each.__name__ for each in EXCHANGES), "who does not try again", "who tries again"]
)
def test_it_is_seen_as_kafkas(answers: tuple[dict[str, list[Any]], dict[str, list[Any]]], exchange: str) -> None:
    of_kafka, ours = answers
    assert ours[exchange] == of_kafka[exchange]
