"""confluent-kafka with ``group.protocol=consumer``, unmodified, against the coordinator (KIP-848)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from kafka import KafkaConsumer
from polled import polled
from topics import WAIT_S, fill, take

from loadwise.coordinator import BrokerSettings, ConsumerGroupLimits, Coordinator, ThreadedCoordinator


def beating(session_timeout_ms: int = 30_000) -> Coordinator:
    """Make one with short heartbeats. By default it evicts no member because the machine is slow."""
    limits = ConsumerGroupLimits(heartbeat_interval_ms=50, session_timeout_ms=session_timeout_ms)
    return Coordinator(settings=BrokerSettings(consumer_groups=limits))


@pytest.fixture(scope="module")
def coordinator() -> Iterator[ThreadedCoordinator]:
    with beating().in_thread() as running:
        yield running


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes the consumers of a test."""
    with ExitStack() as stack:
        yield stack


def consumer(
    stack: ExitStack,
    coordinator: ThreadedCoordinator,
    group_id: str,
    topics: Sequence[str],
    errors: list[KafkaError] | None = None,
    **options: Any,
) -> Consumer:
    settings = {
        "bootstrap.servers": coordinator.bootstrap_servers,
        "group.id": group_id,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": 200,
        "fetch.wait.max.ms": 50,
        "error_cb": (errors if errors is not None else []).append,
    }
    client = Consumer(settings | {name.replace("_", "."): value for name, value in options.items()})
    client.subscribe(list(topics))
    stack.callback(client.close)
    return client


def produce(coordinator: ThreadedCoordinator, topic: str, count: int, partition: int = -1) -> None:
    producer = Producer({"bootstrap.servers": coordinator.bootstrap_servers, "linger.ms": 1})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(WAIT_S) == 0


def until(members: Sequence[Consumer], reached: Callable[[], bool], *passing: int) -> None:
    """Poll all members until it is so; they report no errors but those with these codes."""
    deadline = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < deadline, [member.assignment() for member in members]
        time.sleep(0 if members else 0.02)  # between two looks
        for member in members:
            message = member.poll(0.02)
            assert message is None or message.error() is None or message.error().code() in passing


def counts(members: Sequence[Consumer]) -> list[int]:
    return [len(member.assignment()) for member in members]


@pytest.mark.parametrize("assignor", [None, "uniform", "range", "sticky", "weighted"])
def test_members_share_and_take_over(
    stack: ExitStack, coordinator: ThreadedCoordinator, topic_name: str, group_id: str, assignor: str | None
) -> None:
    coordinator.create_topic(topic_name, 4)
    options = {} if assignor is None else {"group_remote_assignor": assignor}
    members = [consumer(stack, coordinator, group_id, [topic_name], **options) for _ in range(2)]
    until(members, lambda: counts(members) == [2, 2])
    produce(coordinator, topic_name, 40)
    read: list[int] = []
    deadline = time.monotonic() + WAIT_S
    while len(read) < 40:
        assert time.monotonic() < deadline
        for member in members:
            read += [int(message.value()) for message in member.consume(40, 0.05)]
    assert sorted(read) == list(range(40))
    members.pop().close()
    until(members, lambda: counts(members) == [4])


def test_a_group_resumes_where_it_committed(
    stack: ExitStack, coordinator: ThreadedCoordinator, topic_name: str, group_id: str
) -> None:
    coordinator.create_topic(topic_name, 2)
    produce(coordinator, topic_name, 50)
    first = consumer(stack, coordinator, group_id, [topic_name])
    read = take(first, 30)
    first.commit(asynchronous=False)
    first.close()
    second = consumer(stack, coordinator, group_id, [topic_name])
    read += take(second, 20)
    assert sorted(map(int, read)) == list(range(50))


def test_a_crashed_member_is_replaced(stack: ExitStack, topic_name: str, group_id: str) -> None:
    coordinator = stack.enter_context(beating(session_timeout_ms=3000).in_thread())
    coordinator.create_topic(topic_name, 4)
    members = [consumer(stack, coordinator, group_id, [topic_name]) for _ in range(2)]
    # A member that does not poll any more leaves its partitions to the others, once max.poll.interval.ms is over.
    silent = consumer(stack, coordinator, group_id, [topic_name], max_poll_interval_ms=1000)
    everybody = [*members, silent]  # a slow machine may poll it late while all still do
    until(everybody, lambda: sorted(counts(everybody)) == [1, 1, 2], KafkaError._MAX_POLL_EXCEEDED)
    until(members, lambda: counts(members) == [2, 2])


def test_a_static_member_comes_back_without_a_rebalance(
    stack: ExitStack, coordinator: ThreadedCoordinator, topic_name: str, group_id: str
) -> None:
    coordinator.create_topic(topic_name, 4)
    other = consumer(stack, coordinator, group_id, [topic_name])
    revoked: list[TopicPartition] = []
    other.subscribe([topic_name], on_revoke=lambda _, partitions: revoked.extend(partitions))
    static = consumer(stack, coordinator, group_id, [topic_name], group_instance_id="i")
    until([other, static], lambda: counts([other, static]) == [2, 2])
    had = static.assignment()
    revoked.clear()
    static.close()
    back = consumer(stack, coordinator, group_id, [topic_name], group_instance_id="i")
    until([other, back], lambda: counts([other, back]) == [2, 2])
    assert back.assignment() == had
    assert revoked == []


def test_two_of_one_instance_do_not_get_along(
    stack: ExitStack, coordinator: ThreadedCoordinator, topic_name: str, group_id: str
) -> None:
    coordinator.create_topic(topic_name, 1)
    first = consumer(stack, coordinator, group_id, [topic_name], group_instance_id="i")
    until([first], lambda: counts([first]) == [1])
    errors: list[KafkaError] = []
    second = consumer(stack, coordinator, group_id, [topic_name], errors, group_instance_id="i")
    deadline = time.monotonic() + WAIT_S
    while not errors:
        assert time.monotonic() < deadline
        message = second.poll(0.1)
        if message is not None and message.error():
            errors.append(message.error())
    assert errors[0].code() in {KafkaError._FATAL, KafkaError.UNRELEASED_INSTANCE_ID}


def test_a_regular_expression_finds_new_topics(
    stack: ExitStack, coordinator: ThreadedCoordinator, topic_name: str, group_id: str
) -> None:
    coordinator.create_topic(f"{topic_name}.a", 2)
    member = consumer(stack, coordinator, group_id, [f"^{topic_name}\\..*"])
    until([member], lambda: counts([member]) == [2])
    coordinator.create_topic(f"{topic_name}.b", 3)
    until([member], lambda: counts([member]) == [5])


def test_a_topic_that_grows(stack: ExitStack, coordinator: ThreadedCoordinator, topic_name: str, group_id: str) -> None:
    coordinator.create_topic(topic_name, 1)
    members = [consumer(stack, coordinator, group_id, [topic_name]) for _ in range(2)]
    until(members, lambda: sorted(counts(members)) == [0, 1])
    admin = AdminClient({"bootstrap.servers": coordinator.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic_name, 4)])[topic_name].result(WAIT_S)
    until(members, lambda: counts(members) == [2, 2])


def described(coordinator: ThreadedCoordinator, group_id: str) -> Any:
    admin = AdminClient({"bootstrap.servers": coordinator.bootstrap_servers})
    return admin.describe_consumer_groups([group_id])[group_id].result(WAIT_S)


def test_an_administrator_sees_the_group(
    stack: ExitStack, coordinator: ThreadedCoordinator, topic_name: str, group_id: str
) -> None:
    coordinator.create_topic(topic_name, 2)
    member = consumer(stack, coordinator, group_id, [topic_name], client_id="me", group_remote_assignor="range")
    until([member], lambda: counts([member]) == [2])
    group = described(coordinator, group_id)
    assert (group.state, group.type) == (ConsumerGroupState.STABLE, ConsumerGroupType.CONSUMER)
    assert (group.partition_assignor, [each.client_id for each in group.members]) == ("range", ["me"])
    assert group.members[0].assignment.topic_partitions == [TopicPartition(topic_name, n) for n in range(2)]
    admin = AdminClient({"bootstrap.servers": coordinator.bootstrap_servers})

    def listed(**filters: Any) -> set[str]:
        return {each.group_id for each in admin.list_consumer_groups(**filters).result(WAIT_S).valid}

    assert group_id in listed(types={ConsumerGroupType.CONSUMER})
    assert group_id not in listed(types={ConsumerGroupType.CLASSIC})
    assert group_id in listed(states={ConsumerGroupState.STABLE})
    assert group_id not in listed(states={ConsumerGroupState.EMPTY})
    member.close()
    admin.delete_consumer_groups([group_id])[group_id].result(WAIT_S)
    assert group_id not in listed()


def test_an_assignor_that_is_not_there(
    stack: ExitStack, coordinator: ThreadedCoordinator, topic_name: str, group_id: str
) -> None:
    coordinator.create_topic(topic_name, 1)
    errors: list[KafkaError] = []
    member = consumer(stack, coordinator, group_id, [topic_name], errors, group_remote_assignor="best")
    deadline = time.monotonic() + WAIT_S
    while not errors:
        assert time.monotonic() < deadline
        message = member.poll(0.1)
        if message is not None and message.error():
            errors.append(message.error())
    assert "assignor" in str(errors[0])


# Not with librdkafka's cooperative-sticky: its leader writes user data, and Kafka refuses to upgrade a group with any.
@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_a_group_of_librdkafka_is_moved_to_the_new_protocol_and_back(
    stack: ExitStack, coordinator: ThreadedCoordinator, topic_name: str, group_id: str, strategy: str
) -> None:
    coordinator.create_topic(topic_name, 6)
    classic = {
        "group_protocol": "classic",
        "partition_assignment_strategy": strategy,
        "heartbeat_interval_ms": 50,
        "session_timeout_ms": 6000,
    }
    old = [consumer(stack, coordinator, group_id, [topic_name], **classic) for _ in range(2)]
    until(old, lambda: counts(old) == [3, 3])
    new = consumer(stack, coordinator, group_id, [topic_name])
    until([*old, new], lambda: counts([*old, new]) == [2, 2, 2])
    assert described(coordinator, group_id).type is ConsumerGroupType.CONSUMER
    old.pop().close()
    until([*old, new], lambda: counts([*old, new]) == [3, 3])
    new.close()
    until(old, lambda: counts(old) == [6])
    assert described(coordinator, group_id).type is ConsumerGroupType.CLASSIC


def test_kafka_python_is_in_one_group_with_consumers_of_the_new_protocol(
    stack: ExitStack, coordinator: ThreadedCoordinator, topic_name: str, group_id: str
) -> None:
    coordinator.create_topic(topic_name, 4)
    settings = {
        "bootstrap_servers": coordinator.bootstrap_servers,
        "group_id": group_id,
        "heartbeat_interval_ms": 100,
        "session_timeout_ms": 30_000,
    }
    with polled(KafkaConsumer, topic_name, **settings) as old:
        until([], lambda: len(old.assignment()) == 4)
        new = consumer(stack, coordinator, group_id, [topic_name])
        until([new], lambda: (len(old.assignment()), len(new.assignment())) == (2, 2))
        assert not {(each.topic, each.partition) for each in new.assignment()} & {
            tuple(each) for each in old.assignment()
        }
        new.close()
        until([], lambda: len(old.assignment()) == 4)


def max_over_mean(members: Sequence[Consumer], loads: Sequence[int]) -> float:
    """Load of the member that has most, over the mean."""
    each = [sum(loads[partition.partition] for partition in member.assignment()) for member in members]
    return max(each) * len(each) / sum(each)


def test_weighted_evens_out_a_skewed_topic(
    stack: ExitStack, coordinator: ThreadedCoordinator, topic_name: str, group_id: str
) -> None:
    loads = [900, 100, 100, 100, 100, 100, 100, 300]
    coordinator.create_topic(topic_name, len(loads))
    fill(coordinator.bootstrap_servers, topic_name, loads)
    even = [consumer(stack, coordinator, f"{group_id}-uniform", [topic_name]) for _ in range(2)]
    until(even, lambda: counts(even) == [4, 4])
    members = [consumer(stack, coordinator, group_id, [topic_name], group_remote_assignor="weighted") for _ in range(2)]
    until(members, lambda: sum(counts(members)) == len(loads) and all(counts(members)))
    until(members, lambda: max_over_mean(members, loads) <= 1.05)
    assert max_over_mean(even, loads) > 1.1


def test_a_test_sees_the_group_and_acts_on_it(
    stack: ExitStack, coordinator: ThreadedCoordinator, topic_name: str, group_id: str
) -> None:
    coordinator.create_topic(topic_name, 2)
    members = [
        consumer(stack, coordinator, group_id, [topic_name], group_instance_id=name, group_remote_assignor="sticky")
        for name in "ab"
    ]
    until(members, lambda: counts(members) == [1, 1])
    until(members, lambda: coordinator.groups.get(group_id).state == "Stable")
    view = coordinator.groups.get(group_id)
    assert (view.type, view.protocol, len(view.members)) == ("consumer", "sticky", 2)
    assert sorted(partition.partition for partition in view.partitions if partition.member_id) == [0, 1]
    coordinator.groups.rebalance(group_id)
    until(members, lambda: coordinator.groups.get(group_id).generation > view.generation)
    coordinator.groups.kick(group_id, "a")
    until(members, lambda: counts(members) == [1, 1] and len(coordinator.groups.get(group_id).members) == 2)
    assert any("left" in moment.reason for moment in coordinator.groups.get(group_id).history)
