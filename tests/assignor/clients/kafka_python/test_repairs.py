"""What our kafka-python consumers put right of the stock one, against our coordinator and Apache Kafka."""

from __future__ import annotations

import gc
import threading
import time

import pytest
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import MemberToRemove
from topics import WAIT_S, fill, make_topic

from loadwise import kafka_python_consumer

SETTINGS = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "heartbeat_interval_ms": 100,
    "session_timeout_ms": 30_000,
}


def ours(*topics, **config):
    return kafka_python_consumer(*topics, **{"assignor": "range", **SETTINGS, **config})


def stock(*topics, **config):
    return KafkaConsumer(*topics, **SETTINGS, **config)


def places(records):
    return {(record.partition, record.offset) for record in records}


def poll_until(condition, *consumers, timeout_ms=50, read=None):
    """Poll consumers in turn until something holds; ``read`` is extended by what they read."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, [consumer.assignment() for consumer in consumers]
        for consumer in consumers:
            for records in consumer.poll(timeout_ms=timeout_ms).values():
                if read is not None:
                    read.extend(records)


def settled(counts, *consumers):
    """Whether members have so many partitions, and no rebalance is under way that they know of."""
    coordinators = [consumer._coordinator for consumer in consumers]
    return (
        [len(consumer.assignment()) for consumer in consumers] == counts
        and not any(each.need_rejoin() for each in coordinators)
        and all(each.stable() for each in coordinators)
        and len({each._generation.generation_id for each in coordinators}) == 1
    )


class Told(ConsumerRebalanceListener):
    """What a consumer's listener was told."""

    def __init__(self):
        self.revoked, self.assigned, self.lost = [], [], []

    def on_partitions_revoked(self, revoked):
        self.revoked.append(set(revoked))

    def on_partitions_assigned(self, assigned):
        self.assigned.append(set(assigned))

    def on_partitions_lost(self, lost):
        self.lost.append(set(lost))


@pytest.mark.parametrize(("make", "comes_back"), [(stock, False), (ours, True)])
def test_a_partition_paused_with_records_at_hand_is_read_on_after_it_was_resumed(
    make, comes_back, broker, topic_name, group_id
):
    make_topic(broker, topic_name, 2)
    fill(broker, topic_name, [300, 300])
    both = {TopicPartition(topic_name, 0), TopicPartition(topic_name, 1)}
    consumer = make(topic_name, bootstrap_servers=broker, group_id=group_id)
    read = dict.fromkeys(both, 0)

    def poll(most, timeout_ms=200):
        for partition, records in consumer.poll(timeout_ms=timeout_ms, max_records=most).items():
            read[partition] += len(records)

    deadline = time.monotonic() + WAIT_S
    try:
        while not any(read.values()):
            assert time.monotonic() < deadline
            poll(1, timeout_ms=30_000)  # the stock consumer never ends a join that takes longer than a poll
        [paused] = [partition for partition, count in read.items() if count]
        [other] = both - {paused}
        consumer.pause(paused)
        while read[other] < 300:  # exactly what there is: the batch is read to its end, and nothing comes after it
            assert time.monotonic() < deadline
            poll(300 - read[other])
        consumer.resume(paused)
        if comes_back:
            while read[paused] < 300:
                assert time.monotonic() < deadline
                poll(500)
        else:
            for _ in range(5):
                poll(500)
        assert (read[paused] == 300) is comes_back
    finally:
        consumer.close()


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_a_member_evicted_while_it_joins_gives_up_what_it_had(assignor, broker, topic_name, group_id):
    """The stock consumer keeps its partitions and positions: it reads records twice, and commits move offsets back."""
    make_topic(broker, topic_name, 4)
    told = Told()
    common = {"bootstrap_servers": broker, "group_id": group_id, "assignor": assignor}
    first, idle, newcomer = ours(**common), ours(**common), ours(**common)
    first.subscribe([topic_name], listener=told)
    for consumer in (idle, newcomer):
        consumer.subscribe([topic_name])
    try:
        poll_until(lambda: len(first.assignment()) == 4, first)
        poll_until(lambda: settled([2, 2], first, idle), first, idle)
        held = set(first.assignment())
        # The group waits for the idle member, which sends heartbeats and is not polled.
        poll_until(lambda: first._coordinator.rejoining, first, newcomer, timeout_ms=20)
        poll_until(lambda: not first._coordinator.stable(), first, timeout_ms=20)
        member_id = first._coordinator._generation.member_id
        admin = KafkaAdminClient(bootstrap_servers=broker)
        admin.remove_group_members(group_id, [MemberToRemove(member_id=member_id)])
        admin.close()
        poll_until(lambda: told.lost, first, timeout_ms=20)
        assert told.lost == [held]
        assert not first.assignment()
        everybody = (first, idle, newcomer)
        poll_until(lambda: sorted(len(each.assignment()) for each in everybody) == [1, 1, 2], *everybody)
    finally:
        for consumer in (first, idle, newcomer):
            consumer.close(autocommit=False)


@pytest.mark.parametrize("missed", [True, False])
def test_an_eager_member_that_missed_a_generation_reads_on_from_what_is_committed(
    missed, coordinator, topic_name, group_id
):
    """Somebody else may have had its partitions, and have committed, in a generation that it took no part in."""
    make_topic(coordinator.bootstrap_servers, topic_name, 1)
    fill(coordinator.bootstrap_servers, topic_name, [10])
    consumer = ours(topic_name, bootstrap_servers=coordinator.bootstrap_servers, group_id=group_id)
    partition = TopicPartition(topic_name, 0)
    try:
        poll_until(lambda: consumer.assignment() == {partition} and consumer.position(partition) == 10, consumer)
        if missed:
            consumer._coordinator._last_generation -= 1
        generation = consumer._coordinator._generation.generation_id
        again = []
        coordinator.groups.rebalance(group_id)
        poll_until(
            lambda: consumer._coordinator._generation.generation_id > generation and consumer._coordinator.stable(),
            consumer,
            timeout_ms=20,
            read=again,
        )
        if missed:  # nothing is committed: all is read from the beginning
            poll_until(lambda: len(again) >= 10, consumer, read=again)
        assert [record.offset for record in again] == (list(range(10)) if missed else [])
    finally:
        consumer.close(autocommit=False)


def test_a_new_leader_waits_for_the_metadata_of_topics_that_only_others_read(broker, topic_name, group_id):
    """Without, their readers are given nothing in one rebalance, and their partitions in another one."""
    mine, others = f"{topic_name}-mine", f"{topic_name}-others"
    make_topic(broker, mine, 2)
    make_topic(broker, others, 2)
    told = Told()
    common = {"bootstrap_servers": broker, "group_id": group_id}
    leader, other = ours(mine, **common), ours(**common)
    other.subscribe([others], listener=told)
    try:
        poll_until(lambda: len(leader.assignment()) == 2 and leader._coordinator.stable(), leader)
        led = leader.rebalances.led
        poll_until(lambda: len(other.assignment()) == 2, leader, other)
        assert told.assigned == [{TopicPartition(others, 0), TopicPartition(others, 1)}]
        assert leader.rebalances.led == led + 1, "one rebalance was enough"
    finally:
        for consumer in (leader, other):
            consumer.close(autocommit=False)


def test_kept_partitions_are_read_on_while_a_cooperative_group_waits_for_a_slow_member(broker, topic_name, group_id):
    make_topic(broker, topic_name, 6)
    common = {"bootstrap_servers": broker, "group_id": group_id, "assignor": "cooperative-weighted"}
    common["auto_offset_reset"] = "earliest"  # a member that gives up what it never fetched has committed nothing
    reader, slow, newcomer = (ours(topic_name, **common) for _ in range(3))
    try:
        poll_until(lambda: len(reader.assignment()) == 6, reader)
        poll_until(lambda: settled([3, 3], reader, slow), reader, slow)
        poll_until(lambda: reader._coordinator.rejoining, reader, newcomer, timeout_ms=20)
        fill(broker, topic_name, [20] * 6)
        deadline = time.monotonic() + WAIT_S
        read = []
        while len(read) < 60:  # the slow member is not polled: until it is, the join cannot end
            assert time.monotonic() < deadline, f"{len(read)} of 60 records"
            for records in reader.poll(timeout_ms=100).values():
                read.extend(records)
        reader.commit()
        admin = KafkaAdminClient(bootstrap_servers=broker)
        committed = admin.list_group_offsets(group_id)[group_id]
        admin.close()
        assert {partition: committed[partition].offset for partition in reader.assignment()} == dict.fromkeys(
            reader.assignment(), 20
        )
        assert reader._coordinator.rejoining
        everybody = (reader, slow, newcomer)
        poll_until(lambda: settled([2, 2, 2], *everybody) and len(places(read)) == 120, *everybody, read=read)
    finally:
        for consumer in (reader, slow, newcomer):
            consumer.close(autocommit=False)


def test_an_error_of_a_join_that_no_poll_waited_for_is_raised(coordinator, topic_name, group_id):
    """A cooperative member looks after its join only now and then."""
    from kafka.errors import GroupAuthorizationFailedError

    coordinator.create_topic(topic_name, 2)
    consumer = ours(
        topic_name, bootstrap_servers=coordinator.bootstrap_servers, group_id=group_id, assignor="cooperative-sticky"
    )
    try:
        poll_until(lambda: len(consumer.assignment()) == 2 and consumer._coordinator.stable(), consumer)
        coordinator.faults.answer("JoinGroup", error="GROUP_AUTHORIZATION_FAILED", times=1)
        coordinator.groups.rebalance(group_id)
        with pytest.raises(GroupAuthorizationFailedError):
            poll_until(lambda: False, consumer, timeout_ms=20)
        poll_until(lambda: consumer._coordinator.stable(), consumer)
    finally:
        consumer.close(autocommit=False)


def test_a_consumer_dropped_without_being_closed_leaves_no_thread_of_ours(coordinator, topic_name, group_id):
    coordinator.create_topic(topic_name, 2)

    def poll_and_drop():
        made = ours(topic_name, bootstrap_servers=coordinator.bootstrap_servers, group_id=group_id, assignor="weighted")
        poll_until(lambda: len(made.assignment()) == 2, made)
        return made._client, made._net  # the stock consumer's own thread, which it leaves behind

    client, net = poll_and_drop()
    [reading] = [thread for thread in threading.enumerate() if thread.name == f"loadwise-lag-{group_id}"]
    deadline = time.monotonic() + WAIT_S
    while reading.is_alive():  # a fetch under way keeps the consumer until it is answered
        assert time.monotonic() < deadline
        gc.collect()
        reading.join(0.05)
    net.stop()  # first: kafka-python 3.0.0's thread ends with an error where a socket is closed under it
    client.close()
