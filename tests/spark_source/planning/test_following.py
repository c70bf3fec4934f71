"""Plans that follow a consumer group: tasks are its members, with what a real client says that they own."""

from __future__ import annotations

import uuid
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import chain
from threading import Event, Thread
from time import monotonic, sleep
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from confluent_kafka import Consumer, ConsumerGroupState, KafkaError, KafkaException
from hypothesis import given
from hypothesis import strategies as st
from topics import WAIT_S, fill, give_heartbeats_time, make_topic

from loadwise.assignor.model import TopicPartition
from loadwise.coordinator import Coordinator
from loadwise.spark_source.errors import GroupUnavailableError, PlanError
from loadwise.spark_source.options.client_config import ClientConfig
from loadwise.spark_source.planning import following
from loadwise.spark_source.planning.following import ASK_AGAIN_S, MOST_WAIT_S, UNASSIGNED, Owner, follow, owners_of
from loadwise.spark_source.planning.query import planned
from loadwise.spark_source.task import OffsetRange


def owner(name, *partitions, instance_id=None):
    return Owner(name, instance_id, frozenset(TopicPartition("t", partition) for partition in partitions))


def ranges(*sizes):
    return [OffsetRange("t", partition, 0, size) for partition, size in enumerate(sizes)]


def test_tasks_are_members_in_kafkas_order_and_empty_handed_ones_too():
    plan = follow(ranges(5, 6, 7), [owner("b", 0), owner("a"), owner("z", 1, 2, instance_id="first")], "g")
    assert [(task.member, [item.partition for item in task.ranges]) for task in plan.tasks] == [
        ("first", [1, 2]),
        ("a", []),
        ("b", [0]),
    ]
    assert str(plan).startswith("group g plan of 3 tasks, max/mean 2.167: first 13 in 2 ranges, a 0 in 0 ranges")


def test_what_nobody_owns_is_one_more_task_and_a_warning(caplog):
    plan = follow(ranges(5, 6, 0), [owner("a", 0, 9)], "g")
    assert [(task.member, task.weight) for task in plan.tasks] == [("a", 5), (UNASSIGNED, 6)]
    assert "group g: no member owns t-1[0, 6); an extra task reads them" in caplog.text


def test_two_owners_are_refused():
    with pytest.raises(PlanError, match="group g: 1 partitions have more than one owner"):
        follow(ranges(5), [owner("a", 0), owner("b", 0)], "g")


@given(st.lists(st.integers(0, 50), max_size=12), st.lists(st.integers(-1, 3), min_size=12, max_size=12))
def test_every_offset_is_in_one_task(sizes, choice):
    owners = [owner(str(member), *(p for p, mine in enumerate(choice) if mine == member)) for member in range(4)]
    plan = follow(ranges(*sizes), owners, "g")
    found = sorted((item.partition, at) for task in plan.tasks for item in task.ranges for at in range(len(item)))
    assert found == [(partition, at) for partition, size in enumerate(sizes) for at in range(size)]


@contextmanager
def running(members, topic):
    """Each member polls in a thread of its own: a group settles only while all of them do.

    They say there who they are and what they own; asked from another thread, librdkafka answers after minutes.
    """
    over = Event()
    owned = {member: ("", []) for member in members}

    def poll(member):
        member.subscribe([topic])
        while not over.is_set():
            member.poll(0.1)
            owned[member] = member.memberid(), sorted(place.partition for place in member.assignment())
        member.close()

    threads = [Thread(target=poll, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    try:
        yield owned
    finally:
        over.set()
        for thread in threads:
            thread.join()


def check_that_the_plan_is_what_the_members_say(brokers, topic, group_id, protocol):
    settings = {"bootstrap.servers": brokers, "group.id": group_id} | protocol
    members = [Consumer(settings | {"group.instance.id": "static"}), Consumer(settings)]
    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic}
    options |= {"assignment.mode": "follow", "assignment.group": group_id}
    with running(members, topic) as owned:
        deadline = monotonic() + WAIT_S
        while True:
            # A group may rebalance between what a member says and what the broker says: until both say the same.
            said = [mine for _, mine in owned.values()]
            if sorted(chain(*said)) == list(range(5)) and said[1]:
                plan = planned(options)
                found = [sorted({item.partition for item in task.ranges}) for task in plan.tasks]
                if found == said and [task.member for task in plan.tasks] == ["static", owned[members[1]][0]]:
                    break
                assert monotonic() < deadline, f"{plan}; the members say {owned}"
            assert monotonic() < deadline, owned
            sleep(0.05)
        assert sum(task.records for task in plan.tasks) == 14


def test_the_plan_is_what_the_members_of_a_live_group_say_they_own(topic, group_id):
    """Two members of librdkafka's, one of them static; each says itself what it owns."""
    topic = topic([3, 1, 4, 1, 5])
    quick = {"heartbeat.interval.ms": 200}
    check_that_the_plan_is_what_the_members_say(topic.bootstrap_servers, topic.name, group_id, quick)


@pytest.mark.kafka
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_of_both_protocols_of_apache_kafka(apache_kafka, protocol):
    name = f"followed-{uuid.uuid4()}"
    if protocol == "consumer":
        give_heartbeats_time(apache_kafka, name)
    make_topic(apache_kafka, name, 5)
    fill(apache_kafka, name, [3, 1, 4, 1, 5])
    settings = {"group.protocol": protocol}
    check_that_the_plan_is_what_the_members_say(apache_kafka, name, name, settings)


def test_a_group_without_members_is_named(topic, group_id):
    topic = topic([3])
    options = {"assignment.mode": "follow", "assignment.group": group_id, "kafka.default.api.timeout.ms": "700"}
    with pytest.raises(GroupUnavailableError, match=f"^option assignment.group: .*group {group_id}.*"):
        planned(topic.options() | options)


def test_a_group_that_is_empty_for_a_moment_is_waited_for(topic, group_id, monkeypatch):
    """As between the last member that leaves and the first that is started again."""
    topic = topic([3, 2])
    consumer = Consumer({"bootstrap.servers": topic.bootstrap_servers, "group.id": group_id})
    asked = []

    def join_after_two_questions(seconds):
        asked.append(seconds)
        if len(asked) == 2:
            consumer.subscribe([topic.name])
        consumer.poll(0.2)

    monkeypatch.setattr(following, "sleep", join_after_two_questions)
    found = planned(topic.options() | {"assignment.mode": "follow", "assignment.group": group_id})
    consumer.close()
    assert len(asked) >= 2
    assert [task.records for task in found.tasks] == [5]


def test_a_coordinator_that_moves_is_looked_for(group_id):
    """As while the brokers restart one after the other: what fails passes, and a streaming query must not end of it."""
    with Coordinator({"t": 2}).in_thread() as alone:
        options = {"kafka.bootstrap.servers": alone.bootstrap_servers, "subscribe": "t"}
        options |= {"assignment.mode": "follow", "assignment.group": group_id}
        member = Consumer({"bootstrap.servers": alone.bootstrap_servers, "group.id": group_id})
        with running([member], "t"):
            (wanted,) = planned(options).tasks
            for error in ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"):
                alone.faults.answer("DescribeGroups", error=error, times=1)
            alone.faults.disconnect("DescribeGroups", times=1)
            assert [task.member for task in planned(options).tasks] == [wanted.member]
            assert not alone.faults.pending
            alone.faults.answer("DescribeGroups", error="GROUP_AUTHORIZATION_FAILED", times=1)
            with pytest.raises(GroupUnavailableError, match=r"^option assignment.group: .*uthorization failed"):
                planned(options)


def test_patience_beyond_what_librdkafka_takes(topic, group_id, monkeypatch):
    topic = topic([3])
    options = {"assignment.mode": "follow", "assignment.group": group_id, "kafka.default.api.timeout.ms": "7200000"}

    def given_up(_):
        raise InterruptedError

    monkeypatch.setattr(following, "sleep", given_up)
    with pytest.raises(InterruptedError):
        planned(topic.options() | options)


class Group:
    """Answers DescribeGroups, and stops the time: only waits pass it."""

    def __init__(self, answer, *, is_away=False):
        self.answer, self.now_s, self.waits_s, self._is_away = answer, 100.0, [], is_away

    def describe_cluster(self, *, request_timeout):
        future = Future()
        if self._is_away:
            self.now_s += request_timeout
            future.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        else:
            future.set_result(None)
        return future

    def describe_consumer_groups(self, groups, *, request_timeout):
        self.waits_s.append(request_timeout)
        return dict.fromkeys(groups, self)

    def result(self, timeout):
        assert timeout > self.waits_s[-1], "librdkafka's own deadline has to come first"
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def sleep(self, seconds):
        self.now_s += seconds


def owners_by_the_clock_of(group, monkeypatch, patience_ms):
    monkeypatch.setattr(following, "admin_client", lambda _: group)
    monkeypatch.setattr(following, "monotonic", lambda: group.now_s)
    monkeypatch.setattr(following, "sleep", group.sleep)
    return owners_of(ClientConfig({}, api_timeout_ms=patience_ms), "g")


REBALANCING = SimpleNamespace(state=ConsumerGroupState.PREPARING_REBALANCING, members=[SimpleNamespace()])
EMPTY = SimpleNamespace(state=ConsumerGroupState.STABLE, members=[])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (REBALANCING, "group g has been rebalancing for 3000 ms"),
        (EMPTY, "group g has had no members to follow for 3000 ms"),
        (KafkaException(KafkaError(KafkaError.NOT_COORDINATOR)), "Kafka does not describe group g"),
    ],
)
def test_a_group_is_asked_until_the_patience_is_over(answer, problem, monkeypatch):
    group = Group(answer)
    with pytest.raises(GroupUnavailableError, match=problem):
        owners_by_the_clock_of(group, monkeypatch, 3000)
    assert 103.0 <= group.now_s < 103.0 + 2 * ASK_AGAIN_S
    assert group.waits_s[0] == 3.0
    assert min(group.waits_s) == ASK_AGAIN_S


def test_a_group_is_asked_for_only_once_a_broker_answers(monkeypatch):
    """A request to a coordinator that is away ends the process (confluentinc/librdkafka#4605)."""
    group = Group(EMPTY, is_away=True)
    with pytest.raises(GroupUnavailableError, match="Kafka does not describe group g"):
        owners_by_the_clock_of(group, monkeypatch, 3000)
    assert group.waits_s == []


def test_an_error_that_does_not_pass_is_raised_at_once(monkeypatch):
    group = Group(KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)))
    with pytest.raises(GroupUnavailableError, match="Kafka does not describe group g"):
        owners_by_the_clock_of(group, monkeypatch, 24 * 3_600_000)
    assert group.waits_s == [MOST_WAIT_S]
