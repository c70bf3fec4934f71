"""A steered group of three brokers: its coordinator is killed, brokers restart, and one of them lacks the jar."""

import threading
from contextlib import ExitStack, contextmanager

import pytest
from broker_assignor import JAR, NAME, broker_assignor
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_process import SETTINGS
from missing import skipped_where_missing
from plans import carried, heard, plan_for
from three_kafkas import NODES, three_kafkas
from topics import WAIT_S, fill, until

from loadwise.protocol.error_codes import ErrorCode
from loadwise.running_group.admin import connected
from loadwise.running_group.errors import UnreadableGroupError
from loadwise.running_group.reading import read_group
from loadwise.steer.guests import Guests
from loadwise.steer.steering import Steering

pytestmark = pytest.mark.kafka

PARTITIONS = 6


@contextmanager
def brokers(lacking=()):
    """Three brokers with the jar, but those that lack it; their addresses."""
    with skipped_where_missing():
        jar = broker_assignor() / JAR
        having = [node for node in NODES if node not in lacking]
        names = f"uniform,range,{NAME}"
        kafkas = three_kafkas(
            missed_soon=True,
            more={node: {"group.consumer.assignors": names} for node in having},
            beside={node: [jar] for node in having},
        )
        nodes = kafkas.__enter__()
    try:
        yield nodes
    finally:
        kafkas.__exit__(None, None, None)


class Member:
    """A stock member: what it owns, and the records that it has read."""

    def __init__(self, servers, group_id, topic):
        self.owned, self.read, self._left = set(), [], threading.Event()
        config = {"bootstrap.servers": servers, "group.id": group_id, "group.protocol": "consumer", "log_level": 0}
        config |= {"auto.offset.reset": "earliest", "topic.metadata.refresh.interval.ms": 1000}
        self._consumer = Consumer(config)
        self._consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._left.is_set():
            record = self._consumer.poll(0.1)
            if record is not None and record.error() is None:
                self.read.append((record.partition(), record.offset()))
            self.owned = {each.partition for each in self._consumer.assignment()}
        self._consumer.close()

    def leave(self):
        self._left.set()
        self._thread.join()


def steered(stack, servers, group_id, topic):
    """Two members with a plan of five partitions and one, which a running steering process carries."""
    members = [Member(servers, group_id, topic) for _ in range(2)]
    for each in members:
        stack.callback(each.leave)
    admin, other = (stack.enter_context(connected(servers, client_id="loadwise-steer")) for _ in range(2))
    until(lambda: sorted(len(each.owned) for each in members) == [3, 3], lambda: [each.owned for each in members])
    first = Guests("a-first")
    first.grow(1)
    heard(admin, group_id, first)
    carried(admin, group_id, first, plan_for(admin, group_id, topic, (5, 1)).encode(1))
    steering, stop = Steering(other, group_id), threading.Event()
    thread = threading.Thread(target=steering.run, args=(stop,))
    thread.start()
    stack.callback(lambda: (stop.set(), thread.join()))

    def copied():
        heard(admin, group_id, first)
        return (
            len([rack for rack in read_group(admin, group_id).steering.values() if rack.startswith("loadwise-plan")])
            == 2
        )

    until(copied)
    until(lambda: sorted(len(each.owned) for each in members) == [1, 5], lambda: [each.owned for each in members])
    admin.heartbeat(group_id, **first.all[0].leaving())
    until(lambda: steering.leads)
    return admin, members, thread


def coordinator_of(servers, group_id):
    """The node that coordinates a group; None while that is not known."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    try:
        found = admin.describe_consumer_groups([group_id], request_timeout=5)[group_id].result(WAIT_S)
    except KafkaException:
        return None
    return found.coordinator.id


def made(servers, topic):
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, 3)])[topic].result(WAIT_S)
    until(lambda: len(admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions) == PARTITIONS)


# While the only steering process has lost its session, `uniform` assigns, so a busy machine may be too slow for this.
@pytest.mark.live
def test_the_plan_survives_a_killed_coordinator_and_a_rolling_restart(topic_name, group_id):
    with ExitStack() as stack:
        nodes = stack.enter_context(brokers())
        servers = ",".join(node.address for node in nodes.values())
        made(servers, topic_name)
        _, members, thread = steered(stack, servers, group_id, topic_name)
        planned, count = [each.owned for each in members], 0

        def goes_on():
            nonlocal count
            count += 2
            fill(servers, topic_name, [2] * PARTITIONS)
            wanted = {(partition, offset) for partition in range(PARTITIONS) for offset in range(count)}
            until(
                lambda: wanted <= {each for member in members for each in member.read},
                lambda: wanted - {each for member in members for each in member.read},
            )
            assert [each.owned for each in members] == planned
            assert sum(len(each.read) for each in members) == len(wanted), "each record is read once"
            assert thread.is_alive()

        goes_on()
        first = coordinator_of(servers, group_id)
        nodes[first].kill()
        until(lambda: coordinator_of(servers, group_id) not in (None, first))
        goes_on()
        nodes[first].start()
        for node in nodes.values():
            node.stop()
            goes_on()
            node.start()
        goes_on()
        with connected(servers, client_id="loadwise-steer") as admin:
            until(lambda: read_group(admin, group_id).protocol == "loadwise")
            racks = read_group(admin, group_id).steering.values()
            assert any(rack.startswith("loadwise-plan") for rack in racks)


def partition_of(group_id):
    """The partition of __consumer_offsets that has a group, as Kafka's GroupMetadataManager finds it."""
    number = 0
    for char in group_id:
        number = (31 * number + ord(char)) & 0xFFFFFFFF
    return abs(number - (1 << 32) if number >> 31 else number) % int(SETTINGS["offsets.topic.num.partitions"])


def test_a_broker_without_the_jar_refuses_the_process_and_who_joins_a_steered_group(topic_name, group_id):
    """Members of a steered group that comes to it go on; one that joins ends with Kafka's UNKNOWN_SERVER_ERROR."""
    with ExitStack() as stack:
        nodes = stack.enter_context(brokers(lacking=[3]))
        servers = ",".join(node.address for node in nodes.values())
        made(servers, topic_name)
        looking = stack.enter_context(connected(servers, client_id="loadwise-steer"))
        (offsets,) = looking.describe_topics(["__consumer_offsets"])
        replicas = {each["partition_index"]: list(each["replica_nodes"]) for each in offsets["partitions"]}
        names = [f"{group_id}-{number}" for number in range(100)]
        there = next(name for name in names if replicas[partition_of(name)][0] == 3)
        comes = next(name for name in names if replicas[partition_of(name)][1] == 3)
        alone = Member(servers, there, topic_name)
        stack.callback(alone.leave)
        until(lambda: len(alone.owned) == PARTITIONS)
        with pytest.raises(UnreadableGroupError, match="no assignor 'loadwise'"):
            Steering(looking, there).step()
        _, members, _ = steered(stack, servers, comes, topic_name)
        planned = [each.owned for each in members]
        nodes[replicas[partition_of(comes)][0]].kill()
        until(lambda: coordinator_of(servers, comes) == 3)
        join = {"member_id": "joins", "member_epoch": 0, "rebalance_timeout_ms": 9000, "topic_partitions": []}
        admin = stack.enter_context(connected(nodes[3].address, client_id="joins"))
        answer = admin.heartbeat(comes, **join, subscribed_topic_names=[topic_name])
        assert ErrorCode(answer.error_code) is ErrorCode.UNKNOWN_SERVER_ERROR
        fill(servers, topic_name, [2] * PARTITIONS)
        until(lambda: sum(len(each.read) for each in members) == 2 * PARTITIONS)
        assert [each.owned for each in members] == planned
