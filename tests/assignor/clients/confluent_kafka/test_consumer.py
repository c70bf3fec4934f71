"""confluent-kafka's consumer with our assignors: what users call on a ``Consumer``, on both brokers."""

from __future__ import annotations

import base64
import json
import threading
import time
import uuid
from contextlib import suppress

import pytest
from confluent_group import ConfluentGroup
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_STORED,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from secured_kafka import PASSWORDS, PREFIX
from topics import WAIT_S, fill, make_topic

from loadwise import confluent_consumer
from loadwise.assignor.clients.membership.librdkafka_config import member_settings
from loadwise.assignor.errors import BadGroupError, UnsupportedByClientError

PARTITIONS = 6
STRATEGIES = ["weighted", "cooperative-weighted"]


@pytest.fixture
def topic(broker, topic_name):
    make_topic(broker, topic_name, PARTITIONS)
    fill(broker, topic_name, [5] * PARTITIONS)
    return topic_name


@pytest.fixture
def members(broker, group_id):
    everybody = ConfluentGroup(broker, group_id)
    yield everybody
    everybody.close()


def committed(member, topic):
    """The committed offset of every partition; -1001 where there is none."""
    everything = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    return [each.offset for each in member.committed(everything, timeout=WAIT_S)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_members_share_the_topic_and_take_over_from_each_other(topic, members, strategy):
    first = members.join(topic, strategy=strategy)
    assert isinstance(first, Consumer)
    members.until(lambda: len(members.read[first]) == 5 * PARTITIONS)
    first.commit(asynchronous=False)
    second = members.join(topic, strategy=strategy)
    kept, moved = members.settle(3, 3)
    assert ("on_assign", moved) in members.calls[second]
    revoked = [partitions for name, partitions in members.calls[first] if name == "on_revoke"]
    assert revoked == [moved if strategy.startswith("cooperative") else kept | moved]
    members.leave(second)
    assert members.calls[second][-1] == ("on_revoke", moved)
    members.settle(PARTITIONS)
    assert len(members.read[first]) == 5 * PARTITIONS, "nothing is read twice"
    assert members.read[second] == []


def test_a_member_reads_although_the_leaders_come_too_late(coordinator, topic_name, group_id, monkeypatch):
    monkeypatch.setattr("loadwise.assignor.clients.confluent_kafka.consumer.LEADERS_WITHIN_S", 0.01)
    make_topic(coordinator.bootstrap_servers, topic_name, PARTITIONS)
    fill(coordinator.bootstrap_servers, topic_name, [5] * PARTITIONS)
    members = ConfluentGroup(coordinator.bootstrap_servers, group_id)
    late = coordinator.faults.delay("Metadata", ms=200, client_id="late", times=None)
    try:
        member = members.join(topic_name, client_id="late")
        members.until(lambda: len(members.read[member]) == 5 * PARTITIONS)
        assert late.hits > 0
    finally:
        coordinator.faults.clear()
        members.close()


def test_commits_of_all_forms(topic, members):
    reports = []
    member = members.join(topic, on_commit=lambda error, partitions: reports.append((error, partitions)))
    members.settle(PARTITIONS)
    first = None
    while first is None:
        first = member.poll(1)
    [now] = member.commit(message=first, asynchronous=False)
    assert (now.topic, now.partition, now.offset) == (topic, first.partition(), first.offset() + 1)
    assert committed(member, topic)[first.partition()] == first.offset() + 1
    assert member.commit(offsets=[TopicPartition(topic, 2, 4, "by hand")]) is None
    members.until(lambda: reports)
    assert [(error, [(each.partition, each.offset) for each in named]) for error, named in reports] == [
        (None, [(2, 4)])
    ]
    assert member.committed([TopicPartition(topic, 2)], timeout=WAIT_S)[0].metadata == "by hand"
    members.until(lambda: len(members.read[member]) == 5 * PARTITIONS - 1)
    assert len(member.commit(asynchronous=False)) == PARTITIONS
    assert committed(member, topic) == [5] * PARTITIONS
    with pytest.raises(KafkaException) as told:
        member.commit(asynchronous=False)
    assert told.value.args[0].code() == KafkaError._NO_OFFSET


@pytest.mark.parametrize("logical", [OFFSET_BEGINNING, OFFSET_END, OFFSET_STORED])
def test_a_logical_offset_is_not_committed(topic, members, logical):
    """librdkafka leaves it out of the request: the group would lose its place."""
    member = members.join(topic)
    members.settle(PARTITIONS)
    member.commit(offsets=[TopicPartition(topic, 2, 4)], asynchronous=False)
    with pytest.raises(KafkaException) as told:
        member.commit(offsets=[TopicPartition(topic, 2, logical)], asynchronous=False)
    assert told.value.args[0].code() == KafkaError._NO_OFFSET
    assert committed(member, topic)[2] == 4


def test_only_what_was_stored_is_committed(topic, members):
    member = members.join(topic, enable_auto_offset_store=False)
    messages = []
    while len(messages) < 5 * PARTITIONS:
        messages += member.consume(7, timeout=1)
    mine = [each for each in messages if each.partition() == 3]
    member.store_offsets(message=mine[1])
    member.store_offsets(offsets=[TopicPartition(topic, 4, 1)])
    with pytest.raises(KafkaException):
        member.store_offsets(offsets=[TopicPartition(topic, PARTITIONS + 1, 1)])
    member.commit(asynchronous=False)
    assert committed(member, topic) == [-1001, -1001, -1001, 2, 1, -1001]


def test_what_was_read_is_committed_automatically(topic, members):
    member = members.join(topic, enable_auto_commit=True, auto_commit_interval_ms=100)
    members.until(lambda: committed(member, topic) == [5] * PARTITIONS)


def test_what_is_stored_is_committed_when_partitions_go(topic, members):
    never = {"enable_auto_commit": True, "auto_commit_interval_ms": 10_000 * int(WAIT_S)}
    first = members.join(topic, **never)
    members.until(lambda: len(members.read[first]) == 5 * PARTITIONS)
    second = members.join(topic, **never)
    members.settle(3, 3)
    assert committed(second, topic) == [5] * PARTITIONS
    members.leave(first)
    members.settle(PARTITIONS)
    assert members.read[second] == []


def test_a_commit_of_what_is_not_owned_is_dropped_and_reported(topic, members):
    reports = []
    first = members.join(topic, on_commit=lambda error, partitions: reports.append((error, partitions)))
    members.settle(PARTITIONS)
    members.join(topic)
    owned, others = members.settle(3, 3)
    mine, theirs = TopicPartition(topic, min(owned), 3), TopicPartition(topic, min(others), 4)

    with pytest.raises(KafkaException) as told:
        first.commit(offsets=[mine, theirs], asynchronous=False)
    assert told.value.args[0].code() == KafkaError._ASSIGNMENT_LOST
    assert f"{topic} [{theirs.partition}] @ 4" in told.value.args[0].str()
    first.commit(offsets=[theirs])
    members.until(lambda: reports)
    [(error, [named])] = reports
    assert error.code() == KafkaError._ASSIGNMENT_LOST
    assert (named.partition, named.offset) == (theirs.partition, 4)
    assert committed(first, topic)[mine.partition] == 3
    assert committed(first, topic)[theirs.partition] == -1001


def test_positions_are_moved_and_partitions_paused(topic, members):
    member = members.join(topic)
    members.until(lambda: len(members.read[member]) == 5 * PARTITIONS)
    assert [each.offset for each in member.position(member.assignment())] == [5] * PARTITIONS
    member.pause([TopicPartition(topic, 0)])
    member.seek(TopicPartition(topic, 0, 1))
    member.seek(TopicPartition(topic, 1, 3))
    members.until(lambda: len(members.read[member]) == 5 * PARTITIONS + 2)
    assert members.read[member][-2:] == [(1, 3), (1, 4)]
    member.resume([TopicPartition(topic, 0)])
    members.until(lambda: len(members.read[member]) == 5 * PARTITIONS + 6)
    assert members.read[member][-4:] == [(0, 1), (0, 2), (0, 3), (0, 4)]


def test_callbacks_run_in_the_users_poll_and_may_say_where_to_read(topic, members):
    first = members.join(topic)
    members.until(lambda: len(members.read[first]) == 5 * PARTITIONS)
    first.commit(asynchronous=False)
    members.leave(first)
    threads = set()

    def from_the_beginning(consumer, partitions):
        threads.add(threading.get_ident())
        for each in partitions:
            each.offset = OFFSET_BEGINNING
        consumer.assign(partitions)

    again = members.make()
    again.subscribe([topic], on_assign=from_the_beginning)
    members.until(lambda: len(members.read[again]) == 5 * PARTITIONS)
    assert threads == {threading.get_ident()}
    with pytest.raises(KafkaException) as told:
        again.assign([TopicPartition(topic, 0)])
    assert told.value.args[0].code() == KafkaError._STATE


def test_what_a_callback_raises_leaves_poll_and_the_member_goes_on(topic, members):
    def fail(consumer, partitions):
        if partitions:
            raise ZeroDivisionError

    member = members.make()
    member.subscribe([topic], on_assign=fail)
    with pytest.raises(ZeroDivisionError):
        members.settle(PARTITIONS)
    members.until(lambda: len(members.read[member]) == 5 * PARTITIONS)


def test_what_was_read_before_something_is_raised_is_not_lost(topic, members):
    reports = []

    def fail(error, partitions):
        reports.append(error)
        raise ZeroDivisionError

    member = members.join(topic, on_commit=fail, enable_auto_commit=True, auto_commit_interval_ms=1)
    messages, raised = [], 0
    deadline = time.monotonic() + WAIT_S
    while len(messages) < 5 * PARTITIONS or not raised:
        assert time.monotonic() < deadline, (len(messages), raised)
        try:
            messages += member.consume(10 * PARTITIONS, timeout=1)
        except ZeroDivisionError:
            raised += 1
    assert {(each.partition(), each.offset()) for each in messages} == {
        (number, offset) for number in range(PARTITIONS) for offset in range(5)
    }
    members.members.remove(member)
    with suppress(ZeroDivisionError):  # of the last commit
        member.close()


def test_a_pattern_finds_topics_and_so_do_names_beside_it(broker, topic, members):
    other = f"{topic}-other"
    make_topic(broker, other, 1)
    member = members.make()
    member.subscribe([f"^{topic}-.*", topic])
    members.until(lambda: {each.topic for each in member.assignment()} == {topic, other})
    member.subscribe([other])
    members.until(lambda: {each.topic for each in member.assignment()} == {other})
    member.unsubscribe()
    assert member.assignment() == []


def test_a_closed_consumer_says_so(topic, members):
    member = members.join(topic)
    members.settle(PARTITIONS)
    members.leave(member)
    with pytest.raises(RuntimeError):
        member.poll(0)
    assert members.calls[member][-1] == ("on_revoke", set(range(PARTITIONS)))


def test_what_the_application_can_do_is_learned_from_its_polls(broker, topic, members):
    fill(broker, topic, [500] * PARTITIONS)
    member = members.join(topic)
    members.until(lambda: members.read[member])
    while not member._member.busy.per_s:
        assert member.poll(WAIT_S) is not None
        time.sleep(0.06)  # the work on a record; shorter ones are measured together
    assert member._member.busy.per_s < 32  # 16, and the first records came without work


@pytest.mark.kafka
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_credentials_and_certificates_are_given_once_by_librdkafkas_names(secured, mechanism):
    name = f"{PREFIX}{uuid.uuid4().hex[:12]}"
    make_topic(secured.open_address, name, PARTITIONS)
    fill(secured.open_address, name, [5] * PARTITIONS)
    members = ConfluentGroup(secured.address, name)
    member = members.join(
        name,
        security_protocol="SASL_SSL",
        sasl_mechanism=mechanism,
        sasl_username="reader",
        sasl_password=PASSWORDS["reader"],
        ssl_ca_location=str(secured.folder / "ca.pem"),
    )
    members.until(lambda: len(members.read[member]) == 5 * PARTITIONS)
    member.commit(asynchronous=False)
    assert committed(member, name) == [5] * PARTITIONS
    members.close()


def text(secured, name):
    return (secured.folder / name).read_text()


def unsigned_token(config):
    """A token as Kafka's broker takes it where it is told of no other way to check one (RFC 7515, A.5)."""
    claims = {"sub": "owner", "iat": time.time() - 60, "exp": time.time() + 3600}
    parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in ({"alg": "none"}, claims)]
    return f"{b'.'.join(parts).decode()}.", claims["exp"]


@pytest.mark.kafka
@pytest.mark.parametrize("how", ["certificate in files", "certificate as text", "token"])
def test_certificates_and_tokens_are_given_once_too(secured, how):
    name = f"{PREFIX}{uuid.uuid4().hex[:12]}"
    make_topic(secured.open_address, name, PARTITIONS)
    fill(secured.open_address, name, [5] * PARTITIONS)
    members = ConfluentGroup(secured.addresses["SASL_SSL" if how == "token" else "SSL"], name)
    members.settings |= {"ssl.ca.location": str(secured.folder / "ca.pem")}
    if how == "token":
        members.settings |= {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": unsigned_token,
        }
    elif how == "certificate in files":
        members.settings |= {
            "security.protocol": "SSL",
            "ssl.certificate.location": str(secured.folder / "owner.crt"),
            "ssl.key.location": str(secured.folder / "owner.key"),
        }
    else:
        members.settings |= {
            "security.protocol": "SSL",
            "ssl.certificate.pem": text(secured, "owner.crt"),
            "ssl.key.pem": text(secured, "owner.key"),
        }
    member = members.join(name)
    members.until(lambda: len(members.read[member]) == 5 * PARTITIONS)
    member.commit(asynchronous=False)
    assert committed(member, name) == [5] * PARTITIONS
    members.close()


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("partition.assignment.strategy", "use `assignor`"),
        ("group.protocol", "leave it out"),
        ("ssl.keystore.location", "use ssl.certificate.location"),
        ("sasl.oauthbearer.method", "give oauth_cb"),
        ("enable.sasl.oauthbearer.unsecure.jwt", "give oauth_cb"),
    ],
)
def test_settings_that_the_member_cannot_honour_are_refused_by_name(setting, remedy):
    with pytest.raises(UnsupportedByClientError, match=f"{setting} .*{remedy}"):
        confluent_consumer({"bootstrap.servers": "localhost:1", "group.id": "g", setting: "x"})


@pytest.mark.parametrize("setting", ["session.timeout.ms", "max.poll.interval.ms", "auto.commit.interval.ms"])
def test_a_time_that_is_no_number_is_named(setting):
    with pytest.raises(ValueError, match=f"{setting} is 'x'; it must be a whole number of milliseconds"):
        confluent_consumer({"bootstrap.servers": "localhost:1", "group.id": "g", setting: "x"})


@pytest.mark.parametrize("servers", [{}, {"bootstrap.servers": ""}, {"bootstrap.servers": "a:1,"}])
def test_a_configuration_without_brokers_is_refused(servers):
    with pytest.raises(BadGroupError, match=r"set bootstrap\.servers"):
        confluent_consumer({"group.id": "g", **servers})


def test_a_token_that_nobody_gives_is_asked_for_by_name():
    settings = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    with pytest.raises(UnsupportedByClientError, match="OAUTHBEARER needs oauth_cb"):
        confluent_consumer({"bootstrap.servers": "localhost:1", "group.id": "g", **settings})


def test_extensions_of_a_token_reach_the_member():
    given = member_settings(
        {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"},
        lambda _: ("token", 1e10, "principal", {"logicalCluster": "lkc-1"}),
    )["sasl_oauth_token_provider"]
    assert given.token() == "token"
    assert given.extensions() == {"logicalCluster": "lkc-1"}


def test_a_setting_that_is_none_is_not_given(topic, members):
    # As in the stock client; frameworks give all that they know of.
    member = members.join(
        topic, **{"group.instance.id": None, "enable.auto.commit": None, "auto.commit.interval.ms": None}
    )
    members.settle(PARTITIONS)
    assert member._member.metadata().instance_id is None


def test_a_consumer_without_a_group_is_refused():
    with pytest.raises(ValueError, match=r"group\.id"):
        confluent_consumer({"bootstrap.servers": "localhost:1"})
