"""Topics that are deleted while a group reads them: its members drop what they cannot commit, and rebalance as ever."""

import logging
from types import SimpleNamespace

import aiokafka.errors
import kafka.errors
import pytest
from aiokafka import TopicPartition as AiokafkaPartition
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.structs import OffsetAndMetadata as AiokafkaOffset
from confluent_kafka.admin import AdminClient
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.structs import OffsetAndMetadata, TopicPartition
from own_log import own_log
from topics import WAIT_S, fill, make_topic

from loadwise.assignor.clients.aiokafka import internals as aiokafka_internals
from loadwise.assignor.clients.deleted_topics import PATIENCE_S, DeletedTopics, Told, told
from loadwise.assignor.clients.kafka_python import internals as kafka_python_internals
from loadwise.assignor.clients.member_commits import MemberCommits

QUICK = {
    "enable_auto_commit": True,
    "auto_commit_interval_ms": 600_000,  # so the first commit is that in front of a rebalance
    "auto_offset_reset": "earliest",
    "metadata_max_age_ms": 300,
}


def partitions_told(admin, topic):
    """How many partitions of a topic a broker tells of."""
    told = admin.list_topics(timeout=WAIT_S).topics.get(topic)
    return 0 if told is None else len(told.partitions)


@pytest.mark.parametrize("assignor", ["weighted", "cooperative-weighted"])
@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
async def test_a_group_goes_on_without_a_topic_that_was_deleted(  # noqa: PLR0917 (fixtures)
    broker, group, topic_name, client, assignor, caplog, until
):
    """Brokers make such a topic again as soon as a consumer asks for it, with one partition."""
    kept, deleted = f"{topic_name}-kept", f"{topic_name}-deleted"
    group.settings["bootstrap_servers"] = broker
    for topic in (kept, deleted):
        make_topic(broker, topic, 2)
        fill(broker, topic, [10, 10])
    config = QUICK | {"assignor": assignor}
    first = await group.join(client, kept, deleted, **config)
    await group.settle(4)
    subscription = first.consumer._subscription
    if client == "aiokafka":
        for _ in range(40):
            await first.consumer.getone()
    else:
        await until(lambda: sum(at.offset for at in subscription.all_consumed_offsets().values()) == 40)
    with caplog.at_level(logging.WARNING, "loadwise.assignor.clients.deleted_topics"):
        admin = AdminClient({"bootstrap.servers": broker, "log_level": 0})
        admin.delete_topics([deleted])[deleted].result(WAIT_S)
        # Kafka's broker hears of it after the answer, and would take a commit until then.
        await until(lambda: partitions_told(admin, deleted) < 2)
        second = await group.join(client, kept, deleted, **config)

        def shared():
            owned = [first.owned(), second.owned()]
            both = set().union(*owned)
            return (
                all(owned) and {(kept, 0), (kept, 1)} <= both and (deleted, 1) not in both and not owned[0] & owned[1]
            )

        await until(shared)
    told = [record.getMessage() for record in caplog.records if "missing partitions" in record.getMessage()]
    assert len(told) == 1
    assert deleted in told[0]
    assert kept not in told[0]


DELETED, LOCKED, READ = "deleted", "locked", "read"
METADATA = {
    DELETED: (kafka.errors.UnknownTopicOrPartitionError.errno, 0),
    LOCKED: (kafka.errors.TopicAuthorizationFailedError.errno, 0),
    READ: (0, 2),
}
"""Error code and number of partitions, as a broker answers them."""


class Clock:
    """Seconds that pass where a test lets them."""

    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def metadata(brokers=2):
    return told(((name, code, range(count)) for name, (code, count) in METADATA.items()), brokers)


def test_an_offset_is_dropped_only_once_its_partition_has_been_missing_for_a_while(clock, caplog):
    """A broker that has not heard of a new topic yet answers as one does whose topic was deleted."""
    offsets = {TopicPartition(topic, number): "at" for topic in METADATA for number in (0, 2)}
    topics = DeletedTopics("g", clock)
    assert topics.drop(offsets, metadata()) == offsets
    clock.now_s += PATIENCE_S
    with caplog.at_level(logging.WARNING):
        assert {tuple(each) for each in topics.drop(offsets, metadata())} == {(LOCKED, 0), (LOCKED, 2), (READ, 0)}
        topics.drop(offsets, metadata())
    [record] = own_log(caplog)
    message = record.getMessage()
    assert DELETED in message
    assert READ in message
    assert LOCKED not in message


def test_where_there_is_one_broker_nobody_knows_more(clock):
    offsets = {TopicPartition(topic, 0): "at" for topic in METADATA}
    kept = DeletedTopics("g", clock).drop(offsets, metadata(brokers=1))
    assert {partition.topic for partition in kept} == {LOCKED, READ}


def test_a_partition_that_comes_back_must_be_missing_for_a_while_again(clock):
    topics, offsets = DeletedTopics("g", clock), {TopicPartition("new", 0): "at"}
    topics.drop(offsets, Told({"new": ()}, 2))
    topics.drop(offsets, Told({"new": (0,)}, 2))
    clock.now_s += PATIENCE_S
    assert topics.drop(offsets, Told({"new": ()}, 2)) == offsets


def kafka_python_committer(monkeypatch, clock, commit):
    async def send(*_, **__):
        partitions = {name: [SimpleNamespace(partition_index=n) for n in range(n)] for name, (_, n) in METADATA.items()}
        return SimpleNamespace(
            brokers=range(2),
            topics=[
                SimpleNamespace(name=name, error_code=code, partitions=partitions[name])
                for name, (code, _) in METADATA.items()
            ],
        )

    async def commit_it(_, offsets):
        commit(offsets, kafka.errors)

    monkeypatch.setattr(ConsumerCoordinator, "_send_offset_commit_request", commit_it)
    coordinator = object.__new__(kafka_python_internals.KafkaPythonCoordinator)
    coordinator.load_watch = None
    coordinator._commits = MemberCommits("g", kafka.errors)
    coordinator._commits.deleted_topics = DeletedTopics("g", clock)
    coordinator._manager = SimpleNamespace(send=send)
    coordinator.coordinator = lambda: "coordinator-0"
    offsets = {TopicPartition(topic, 0): OffsetAndMetadata(5, "", -1) for topic in METADATA}
    return lambda: coordinator._commit_what_exists(offsets), kafka.errors


def aiokafka_committer(monkeypatch, clock, commit):
    async def send(*_, group):
        # On the other connection the answer to a JoinGroup may be waited for.
        assert group == aiokafka_internals.ConnectionGroup.DEFAULT
        topics = [
            {"topic": name, "error_code": code, "partitions": [{"partition": n} for n in range(count)]}
            for name, (code, count) in METADATA.items()
        ]
        return SimpleNamespace(to_object=lambda: {"brokers": range(2), "topics": topics})

    async def known():
        pass

    async def commit_it(_, __, offsets):
        commit(offsets, aiokafka.errors)

    monkeypatch.setattr(GroupCoordinator, "_do_commit_offsets", commit_it)
    monkeypatch.setattr(GroupCoordinator, "__del__", lambda _: None, raising=False)
    coordinator = object.__new__(aiokafka_internals.CooperativeCoordinator)
    coordinator.commits = MemberCommits("g", aiokafka.errors)
    coordinator.commits.deleted_topics = DeletedTopics("g", clock)
    coordinator.member_id = "m"
    coordinator._client = SimpleNamespace(send=send)
    coordinator.ensure_coordinator_known = known
    coordinator.coordinator_id = 0
    offsets = {AiokafkaPartition(topic, 0): AiokafkaOffset(5, "") for topic in METADATA}
    return lambda: coordinator._do_commit_offsets(None, offsets), aiokafka.errors


@pytest.mark.parametrize("committer", [kafka_python_committer, aiokafka_committer])
async def test_a_topic_that_may_not_be_read_beside_one_that_is_gone_fails_the_commit(monkeypatch, clock, committer):
    """Else its offsets would be dropped for those of a topic that was deleted, and the commit would seem to succeed."""
    asked = []

    def commit(offsets, errors):
        topics = {partition.topic for partition in offsets}
        asked.append(topics)
        if DELETED in topics:
            raise errors.UnknownTopicOrPartitionError
        if LOCKED in topics:
            raise errors.TopicAuthorizationFailedError({LOCKED})

    run, errors = committer(monkeypatch, clock, commit)
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        await run()
    clock.now_s += PATIENCE_S
    with pytest.raises(errors.TopicAuthorizationFailedError):
        await run()
    assert asked == [{DELETED, LOCKED, READ}, {DELETED, LOCKED, READ}, {LOCKED, READ}]
