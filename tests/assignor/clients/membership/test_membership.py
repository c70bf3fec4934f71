"""What a confluent-kafka member keeps to: deadlines, the order of a rebalance, and that no zombie commits."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from types import SimpleNamespace

import pytest
from confluent_group import ConfluentGroup
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka.errors import CoordinatorLoadInProgressError, UnknownMemberIdError
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as Partition
from topics import WAIT_S, fill, make_topic, until

from loadwise.assignor.clients.membership.commits import OwnedCommits

PARTITIONS = 6
COOPERATIVE = "cooperative-weighted"
SHORTEST_MS = 6_000
"""The shortest session that Apache Kafka grants by default (``group.min.session.timeout.ms``)."""


@pytest.fixture
def topic(broker, topic_name):
    make_topic(broker, topic_name, PARTITIONS)
    return topic_name


@pytest.fixture
def members(broker, group_id):
    everybody = ConfluentGroup(broker, group_id)
    yield everybody
    everybody.close()


@pytest.fixture
def evict(broker, coordinator, group_id):
    """Ends a member's session at once on our coordinator. On Apache Kafka it ends by itself: `SHORTEST_MS` is given."""

    def evicts(member):
        if broker == coordinator.bootstrap_servers:
            coordinator.groups.expire_session(group_id, member.memberid())

    return evicts


def heartbeats_of(member):
    """How many heartbeats a member has sent by now; call the answer."""
    coordinator = member._member._coordinator
    send, sent = coordinator._send_heartbeat_request, []

    async def counting():
        sent.append(None)
        return await send()

    coordinator._send_heartbeat_request = counting
    return lambda: len(sent)


def let_die(member):
    """Let a member send no heartbeats any more, and not know it."""
    member._member._coordinator.heartbeat.time_to_next_heartbeat = lambda: 10 * WAIT_S


def revive(member):
    """Take `let_die` back."""
    del member._member._coordinator.heartbeat.time_to_next_heartbeat
    member._member._coordinator._heartbeat_wakeup.notify()


@pytest.mark.parametrize("strategy", ["weighted", COOPERATIVE])
def test_who_does_not_poll_leaves_the_group_and_is_told_so(topic, members, strategy):
    slow = members.join(topic, strategy=strategy, max_poll_interval_ms=123_456)
    members.settle(PARTITIONS)
    members.members.remove(slow)  # polled by nobody; its heartbeats go on until the deadline
    deadline = slow._member._coordinator.heartbeat.config
    assert deadline["max_poll_interval_ms"] == 123_456
    deadline["max_poll_interval_ms"] = 500  # longer than between two heartbeats, which do not count as polls
    members.join(topic, strategy=strategy)
    members.settle(PARTITIONS)
    with pytest.raises(KafkaException) as told:
        slow.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    assert told.value.args[0].code() in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError._ASSIGNMENT_LOST)
    deadline["max_poll_interval_ms"] = 123_456
    members.members.append(slow)
    members.settle(3, 3)
    assert [error.code() for error in members.errors.pop(slow)] == [KafkaError._MAX_POLL_EXCEEDED]
    assert ("on_lost", set(range(PARTITIONS))) in members.calls[slow]
    assert [name for name, _ in members.calls[slow]].count("on_revoke") == 0


def test_a_member_that_is_busy_stays_while_a_join_goes_on_by_itself(topic, members):
    busy = members.join(topic, strategy=COOPERATIVE)
    members.settle(PARTITIONS)
    other = members.join(topic, strategy=COOPERATIVE)
    # The first begins a join, and is busy with a record while the other joins and for many heartbeats more.
    members.until(lambda: busy._member._prepared)
    members.members.remove(busy)
    sent = heartbeats_of(busy)
    members.until(lambda: sent() > 10)
    members.members.insert(0, busy)
    members.settle(3, 3)
    assert "on_lost" not in [name for name, _ in members.calls[busy]]
    assert other in members.members


def test_who_asks_for_a_topic_that_is_not_there_does_not_make_it(broker, topic_name, members):
    """As librdkafka's own consumers: brokers make a topic for whoever does not tell them otherwise."""
    member = members.join(topic_name)
    asked = member._member._cluster._last_successful_refresh_ms
    members.until(lambda: not member._member.joining and member._member._cluster._last_successful_refresh_ms > asked)
    assert topic_name not in AdminClient({"bootstrap.servers": broker, "log_level": 0}).list_topics().topics
    members.until(lambda: members.errors[member])
    assert [error.code() for error in members.errors.pop(member)] == [KafkaError.UNKNOWN_TOPIC_OR_PART]


def test_who_closes_waits_for_commits_as_long_as_for_leaving(coordinator, topic_name, group_id, monkeypatch, caplog):
    """With the defaults it was 300 s where no broker answers; services are killed long before that."""
    make_topic(coordinator.bootstrap_servers, topic_name, PARTITIONS)
    members = ConfluentGroup(coordinator.bootstrap_servers, group_id)
    closing = members.join(topic_name)
    members.settle(PARTITIONS)
    coordinator.faults.answer("OffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS", times=1_000_000, group=group_id)
    closing.commit(offsets=[TopicPartition(topic_name, 0, 1)])
    monkeypatch.setattr("loadwise.assignor.clients.membership.member.CLOSING_TIMEOUT_S", 0.1)
    members.close()
    assert "Commits were not answered within 0.1 s" in caplog.text


def test_a_coordinator_in_trouble_is_asked_less_and_less_often():
    paused_s = []

    async def refuse(offsets):
        raise CoordinatorLoadInProgressError if len(paused_s) < 9 else UnknownMemberIdError

    async def sleep(pause_s):
        paused_s.append(pause_s)

    coordinator = SimpleNamespace(
        _send_offset_commit_request=refuse,
        _net=SimpleNamespace(sleep=sleep),
        _generation=None,
        _heartbeat_closed=False,
        fenced=False,
        coordinator_unknown=lambda: False,
        _manager=SimpleNamespace(call_soon=lambda send: asyncio.run(send())),
    )
    commits, outcomes = OwnedCommits(coordinator), []
    partition = Partition("t", 0)
    commits.own({partition})
    commits.put({partition: OffsetAndMetadata(1, "", -1)}, outcomes.append)
    commits.call_back()
    assert [type(outcome.error) for outcome in outcomes] == [UnknownMemberIdError]
    assert paused_s[0] < 0.1
    assert paused_s[-1] == 1.0
    assert sorted(paused_s) == paused_s


def test_kept_partitions_are_read_and_committed_while_others_join(broker, topic, members):
    first = members.join(topic, strategy=COOPERATIVE)
    second = members.join(topic, strategy=COOPERATIVE)
    kept, _ = members.settle(3, 3)
    third = members.join(topic, strategy=COOPERATIVE)
    members.members.remove(second)  # so the join cannot end
    members.until(lambda: first._member._prepared and third._member._prepared)
    fill(broker, topic, [2] * PARTITIONS)
    members.until(lambda: len(members.read[first]) == 2 * len(kept))
    first.commit(asynchronous=False)
    assert members.owned(first) == kept
    assert first._member._prepared, "all of that while the join went on"
    members.members.insert(1, second)
    members.settle(2, 2, 2)
    every = [TopicPartition(topic, number) for number in kept]
    assert [each.offset for each in first.committed(every, timeout=WAIT_S)] == [2] * len(kept)


def test_a_consumer_that_is_dropped_leaves_its_group_and_no_thread(topic, members):
    before = set(threading.enumerate())
    dropped = members.join(topic)
    members.settle(PARTITIONS)
    until(lambda: set(threading.enumerate()) - before)
    gone = weakref.ref(dropped)
    for known in (members.read, members.errors, members.calls):
        del known[dropped]
    members.members.clear()
    del dropped
    until(lambda: gc.collect() is not None and gone() is None)
    until(lambda: not set(threading.enumerate()) - before)
    members.join(topic)
    members.settle(PARTITIONS)  # the other one has left: its session would have gone on


@pytest.mark.parametrize("strategy", ["weighted", COOPERATIVE])
def test_nobody_gets_a_partition_before_its_owner_has_committed_it(broker, topic, members, strategy):
    fill(broker, topic, [3] * PARTITIONS)
    second_reads = []

    def commit_late(consumer, partitions):
        # The other has joined long ago, and gets nothing until this returns.
        if second not in members.members:
            return
        for _ in range(20):
            message = second.poll(0.05)
            if message is not None:
                second_reads.append(message.partition())
        assert second_reads == []
        consumer.commit(offsets=[TopicPartition(topic, each.partition, 3) for each in partitions])

    first = members.make(strategy=strategy)
    first.subscribe([topic], on_revoke=commit_late)
    members.settle(PARTITIONS)
    second = members.join(topic, strategy=strategy)
    _, moved = members.settle(3, 3)
    mine = [TopicPartition(topic, number) for number in moved]
    assert [each.offset for each in second.committed(mine, timeout=WAIT_S)] == [3] * 3
    assert members.read[second] == []


@pytest.mark.parametrize("strategy", ["weighted", COOPERATIVE])
def test_a_zombie_cannot_commit(evict, topic, members, strategy):
    zombie = members.join(topic, strategy=strategy, session_timeout_ms=SHORTEST_MS)
    members.settle(PARTITIONS)
    let_die(zombie)
    evict(zombie)
    members.members.remove(zombie)
    heir = members.join(topic, strategy=strategy)
    members.settle(PARTITIONS)
    heir.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    with pytest.raises(KafkaException) as told:
        zombie.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    assert told.value.args[0].code() in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION)
    assert heir.committed([TopicPartition(topic, 0)], timeout=WAIT_S)[0].offset == 5
    members.members.append(zombie)
    revive(zombie)
    members.settle(3, 3)


def test_a_static_member_comes_back_to_what_it_had_and_fences_its_former_self(topic, members):
    former = members.join(topic, group_instance_id="one")
    members.join(topic, group_instance_id="two")
    had, _ = members.settle(3, 3)
    members.leave(former)
    other = members.members[0]
    calls = len(members.calls[other])
    back = members.join(topic, group_instance_id="one")
    members.until(lambda: members.owned(back) == had)
    assert len(members.calls[other]) == calls, "nobody else notices"

    let_die(back)
    members.members.remove(back)
    twin = members.join(topic, group_instance_id="one")
    members.until(lambda: members.owned(twin) == had)
    with pytest.raises(KafkaException) as told:
        back.commit(offsets=[TopicPartition(topic, min(had), 1)], asynchronous=False)
    assert told.value.args[0].code() == KafkaError.FENCED_INSTANCE_ID
    with pytest.raises(KafkaException) as told:
        back.poll(0)
    assert told.value.args[0].fatal()
    back.close()


def test_a_queued_commit_does_not_go_out_after_its_partition_has_moved(coordinator, topic_name, group_id):
    make_topic(coordinator.bootstrap_servers, topic_name, PARTITIONS)
    members = ConfluentGroup(coordinator.bootstrap_servers, group_id)
    reports = []
    first = members.join(
        topic_name, strategy=COOPERATIVE, on_commit=lambda error, partitions: reports.append((error, partitions))
    )
    members.settle(PARTITIONS)
    fault = coordinator.faults.answer(
        "OffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS", times=1_000_000, group=group_id
    )
    everything = [TopicPartition(topic_name, number, 7) for number in range(PARTITIONS)]
    first.commit(offsets=everything)
    until(lambda: fault.hits > 0)
    # The member waits for its commits before it gives anything up; this one is put out instead.
    let_die(first)
    members.members.remove(first)
    coordinator.groups.expire_session(group_id, first.memberid())
    second = members.join(topic_name, strategy=COOPERATIVE)
    members.settle(PARTITIONS)
    coordinator.faults.remove(fault)
    revive(first)
    members.members.append(first)
    members.until(lambda: reports)
    assert all(error is not None for error, _ in reports)
    assert [each.offset for each in second.committed(everything, timeout=WAIT_S)] == [-1001] * PARTITIONS
    members.close()


@pytest.mark.parametrize("strategy", ["weighted", COOPERATIVE])
def test_what_is_given_after_a_generation_was_lost_is_taken(coordinator, topic_name, group_id, strategy):
    # As when another member joins between JoinGroup and SyncGroup: the join begins again, and ends in the same call.
    make_topic(coordinator.bootstrap_servers, topic_name, PARTITIONS)
    members = ConfluentGroup(coordinator.bootstrap_servers, group_id)
    fault = coordinator.faults.answer("SyncGroup", error="REBALANCE_IN_PROGRESS", times=1, group=group_id)
    member = members.join(topic_name, strategy=strategy)
    member._member.poll(WAIT_S)
    assert fault.hits == 1
    members.settle(PARTITIONS)
    members.close()


@pytest.mark.kafka
@pytest.mark.parametrize("fate", ["lives", "dies", "replaced"])
def test_a_transaction_is_fenced_by_the_members_generation(apache_kafka, topic_name, group_id, fate):
    make_topic(apache_kafka, topic_name, PARTITIONS)
    members = ConfluentGroup(apache_kafka, group_id)
    static = {"group_instance_id": "one"} if fate == "replaced" else {}
    member = members.make(session_timeout_ms=SHORTEST_MS, **static)
    with pytest.raises(KafkaException):
        member.consumer_group_metadata()  # it is of no generation yet
    member.subscribe([topic_name])
    members.settle(PARTITIONS)
    metadata = member.consumer_group_metadata()
    if fate != "lives":
        let_die(member)
        members.members.remove(member)
        heir = members.join(topic_name, **static)
        members.settle(PARTITIONS)
        heir.commit(offsets=[TopicPartition(topic_name, 0, 5)], asynchronous=False)

    producer = Producer({"bootstrap.servers": apache_kafka, "transactional.id": group_id, "log_level": 0})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic_name, b"x", partition=1)
    mine = [TopicPartition(topic_name, 0, 1)]
    if fate == "lives":
        producer.send_offsets_to_transaction(mine, metadata, WAIT_S)
        producer.commit_transaction(WAIT_S)
        assert member.committed(mine, timeout=WAIT_S)[0].offset == 1
    else:
        with pytest.raises(KafkaException) as told:
            producer.send_offsets_to_transaction(mine, metadata, WAIT_S)
        fenced = (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.FENCED_INSTANCE_ID)
        assert told.value.args[0].code() in fenced
        producer.abort_transaction(WAIT_S)
        assert heir.committed(mine, timeout=WAIT_S)[0].offset == 5
        member.close()
    members.close()
