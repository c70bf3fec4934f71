"""A group of stock librdkafka members is steered: what drowns one member is dealt out, and no record is lost."""

import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager

import pytest
from confluent_kafka import Consumer
from topics import make_topic, until
from traffic import write_hot

from loadwise.protocol.steering_note import newest_parts
from loadwise.running_group.admin import connected
from loadwise.running_group.errors import UnreadableGroupError
from loadwise.running_group.reading import read_group
from loadwise.steer.steering import Steering

PARTITIONS, MEMBERS, SPEED = 12, 3, 600.0
PLANNED_S = 300.0
"""A plan takes ten seconds; where a busy machine stops members, what they can process is learned late."""


class Group:
    """Stock members, and records that arrive all the time in partitions of one of them."""

    def __init__(self, servers, topic, group_id):
        self.servers, self.topic, self.id = servers, topic, group_id
        self.owned, self.sent, self.done, self.hot = {}, Counter(), Counter(), set()
        self._left = threading.Event()

    @contextmanager
    def running(self):
        producing, threads = (
            threading.Event(),
            [threading.Thread(target=self._consume, args=(n,)) for n in range(MEMBERS)],
        )
        producer = threading.Thread(target=self._produce, args=(producing,))
        for thread in (*threads, producer):
            thread.start()
        try:
            yield self
        finally:
            producing.set()
            producer.join()
            until(lambda: self.done == self.sent, lambda: (self.sent - self.done, self.done - self.sent))
            self._left.set()
            for thread in threads:
                thread.join()

    def shared(self):
        """Whether all members have joined: each has an equal part."""
        return [len(each) for each in self.owned.values()] == [PARTITIONS // MEMBERS] * MEMBERS

    def _consume(self, number):
        settings = {
            "bootstrap.servers": self.servers,
            "group.id": self.id,
            "group.protocol": "consumer",
            "log_level": 0,
        }
        consumer = Consumer(settings | {"auto.offset.reset": "earliest", "auto.commit.interval.ms": 500})
        consumer.subscribe([self.topic])
        while not self._left.is_set():
            records = [each for each in consumer.consume(50, 0.1) if each.error() is None]
            self.done.update(each.partition() for each in records)
            self.owned[number] = {each.partition for each in consumer.assignment()}
            time.sleep(len(records) / SPEED)  # its work
        consumer.close()

    def _produce(self, ended):
        write_hot(self.servers, self.topic, PARTITIONS, hot=self.hot, sent=self.sent, over=ended)


def test_hot_partitions_of_one_member_are_dealt_out(broker, topic_name, group_id):
    make_topic(broker, topic_name, PARTITIONS)
    stop = threading.Event()
    with ExitStack() as stack:
        admin = stack.enter_context(connected(broker, client_id="loadwise-steer"))
        group = stack.enter_context(Group(broker, topic_name, group_id).running())
        until(group.shared, lambda: group.owned)
        group.hot.update(group.owned[0])
        steering = threading.Thread(target=Steering(admin, group_id).run, args=(stop,))
        steering.start()
        stack.callback(lambda: (stop.set(), steering.join()))
        until(
            lambda: (
                max(len(group.hot & each) for each in group.owned.values()) == 2
                and sum(map(len, group.owned.values())) == PARTITIONS
            ),
            lambda: (group.hot, group.owned),
            limit_s=PLANNED_S,
        )
        seen = read_group(admin, group_id)
        assert len(seen.members) == MEMBERS
        assert len(seen.steering) == 1
        assert seen.protocol == "loadwise"
        stop.set()
        steering.join()
        until(lambda: not read_group(admin, group_id).steering)


def test_a_group_without_members_is_not_joined(broker, group_id):
    with connected(broker, client_id="loadwise-steer") as admin:
        steering = Steering(admin, group_id)
        assert steering.step() > 0
        with pytest.raises(UnreadableGroupError, match="has no members"):
            read_group(admin, group_id)


def test_a_second_process_carries_the_plan_and_steers_when_the_first_has_left(broker, topic_name, group_id):
    make_topic(broker, topic_name, PARTITIONS)
    with ExitStack() as stack:
        admins = [stack.enter_context(connected(broker, client_id="loadwise-steer")) for _ in range(2)]
        group = stack.enter_context(Group(broker, topic_name, group_id).running())
        until(group.shared, lambda: group.owned)
        first, second = (Steering(admin, group_id) for admin in admins)
        for each in (first, second):
            stack.callback(each.leave)
            each.step()
        group.hot.update(group.owned[0])

        def carried():
            first.step()
            second.step()
            return newest_parts(carried_racks(admins[0], group_id))

        until(lambda: carried()[1], lambda: group.owned, limit_s=PLANNED_S)
        until(lambda: Counter(carried_racks(admins[0], group_id)) == dict.fromkeys(carried()[1], 2))
        sequence, parts = carried()
        first.leave()
        assert newest_parts(carried_racks(admins[1], group_id)) == (sequence, parts)
        second.step()
        assert second.leads


def carried_racks(admin, group_id):
    return [rack for _, rack in sorted(read_group(admin, group_id).steering.items())]
