"""Steering members in groups that have other plans, in groups of every kind of member, and without rights."""

import threading
from collections import Counter
from contextlib import ExitStack, contextmanager

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from note_parts import parts_of
from plans import carried, heard, plan_for
from secured_clients import Access
from secured_kafka import PASSWORDS, SUPER_USERS
from topics import WAIT_S, make_topic, until

from loadwise.coordinator import Authorization, Coordinator, Security
from loadwise.protocol.steering_note import TOPIC_PREFIX, name_hash
from loadwise.running_group.admin import connected
from loadwise.running_group.errors import UnreadableGroupError
from loadwise.running_group.reading import read_group
from loadwise.steer.guests import Guests
from loadwise.steer.steering import Steering

PARTITIONS = 6


@contextmanager
def member(servers, group_id, topic, **settings):
    """A stock member of librdkafka; its partitions, by topic."""
    config = {"bootstrap.servers": servers, "group.id": group_id, "group.protocol": "consumer", "log_level": 0}
    consumer = Consumer(config | settings)
    consumer.subscribe([topic])
    owned, left = set(), threading.Event()

    def run():
        while not left.is_set():
            consumer.poll(0.05)
            now = {(each.topic, each.partition) for each in consumer.assignment()}
            owned.symmetric_difference_update(owned ^ now)
        consumer.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield owned
    finally:
        left.set()
        thread.join()


def numbers(owned, topic):
    return {number for name, number in owned if name == topic}


def stepped(steering, caplog, words):
    """Step until the log has these words."""
    caplog.set_level("INFO", "loadwise.steer")

    def said():
        steering.step()
        return words in caplog.text

    until(said, lambda: caplog.text)


def test_members_that_name_another_assignor_outvote_the_steering_member(broker, topic_name, group_id, caplog):
    make_topic(broker, topic_name, PARTITIONS)
    with ExitStack() as stack:
        admin = stack.enter_context(connected(broker, client_id="loadwise-steer"))
        for _ in range(2):
            stack.enter_context(member(broker, group_id, topic_name, **{"group.remote.assignor": "uniform"}))
        until(lambda: admin.describe_consumer_group(group_id).members)
        steering = Steering(admin, group_id)
        stack.callback(steering.leave)
        stepped(steering, caplog, "Waiting: the group follows 'uniform', because 1 or more of its")
        assert "name it and 1 ours; remove group.remote.assignor from the members" in caplog.text
        assert read_group(admin, group_id).protocol == "uniform"


def test_the_first_assignor_of_the_broker_is_back_when_steering_ends(broker, topic_name, group_id):
    make_topic(broker, topic_name, PARTITIONS)
    with ExitStack() as stack:
        admin = stack.enter_context(connected(broker, client_id="loadwise-steer"))
        stack.enter_context(member(broker, group_id, topic_name))
        until(lambda: admin.describe_consumer_group(group_id).members)
        before = read_group(admin, group_id).protocol
        steering = Steering(admin, group_id)
        stack.callback(steering.leave)
        until(lambda: steering.step() and read_group(admin, group_id).protocol == "loadwise")
        steering.leave()
        until(lambda: read_group(admin, group_id).protocol == before != "loadwise")


def test_steering_members_leave_with_the_last_member_and_come_back(broker, topic_name, group_id):
    make_topic(broker, topic_name, PARTITIONS)
    with ExitStack() as stack:
        admin = stack.enter_context(connected(broker, client_id="loadwise-steer"))
        steering = Steering(admin, group_id)
        stack.callback(steering.leave)
        for _ in range(2):
            with member(broker, group_id, topic_name):
                until(lambda: steering.step() and count(admin, group_id) == 2)
            until(lambda: steering.step() and count(admin, group_id) == 0)
            groups = AdminClient({"bootstrap.servers": broker, "log_level": 0})
            groups.delete_consumer_groups([group_id])[group_id].result(WAIT_S)


def test_a_classic_group_is_not_joined(broker, topic_name, group_id, caplog):
    make_topic(broker, topic_name, PARTITIONS)
    with ExitStack() as stack:
        admin = stack.enter_context(connected(broker, client_id="loadwise-steer"))
        owned = stack.enter_context(member(broker, group_id, topic_name, **{"group.protocol": "classic"}))
        until(lambda: len(owned) == PARTITIONS)
        steering = Steering(admin, group_id)
        stack.callback(steering.leave)
        stepped(steering, caplog, f"Waiting: the group {group_id} is a classic one")
        assert len(read_group(admin, group_id).members) == 1
        assert read_group(admin, group_id).is_classic


def count(admin, group_id):
    return len(admin.describe_consumer_group(group_id).members)


def test_a_static_member_and_one_of_all_topics_follow_a_plan(broker, topic_name, group_id):
    make_topic(broker, topic_name, PARTITIONS)
    with ExitStack() as stack:
        admin = stack.enter_context(connected(broker, client_id="loadwise-steer"))
        every = stack.enter_context(member(broker, group_id, "^.*"))
        static = stack.enter_context(member(broker, group_id, topic_name, **{"group.instance.id": "static"}))
        until(lambda: len(numbers(every, topic_name)) + len(static) == PARTITIONS and static, lambda: (every, static))
        guests = Guests("steering")
        guests.grow(1)
        stack.callback(lambda: admin.heartbeat(group_id, **guests.all[0].leaving()))
        heard(admin, group_id, guests)
        for shares in ((5, 1), (1, 5)):
            plan = plan_for(admin, group_id, topic_name, shares)
            carried(admin, group_id, guests, plan.encode(1 + shares[1]))
            names = list(plan.capacities)
            share = shares[names.index(name_hash("", "static"))]
            until(
                lambda share=share: (len(static), len(numbers(every, topic_name))) == (share, PARTITIONS - share),
                lambda: (static, numbers(every, topic_name)),
            )
        assert not any(name.startswith(TOPIC_PREFIX) for name, _ in every)
        assert not any(name.startswith(TOPIC_PREFIX) for name in admin.list_topics())
        assert len(read_group(admin, group_id).members) == 2


def test_a_process_that_dies_between_two_parts_leaves_the_plan_to_the_one_that_stands_by(broker, topic_name, group_id):
    make_topic(broker, topic_name, PARTITIONS)
    with ExitStack() as stack:
        admin = stack.enter_context(connected(broker, client_id="loadwise-steer"))
        owned = [stack.enter_context(member(broker, group_id, topic_name)) for _ in range(2)]
        until(lambda: all(owned) and sum(map(len, owned)) == PARTITIONS, lambda: owned)
        dies, stays = Guests("dies"), Guests("stays")
        for guests in (dies, stays):
            guests.grow(2)
            heard(admin, group_id, guests)
        old, new = (plan_for(admin, group_id, topic_name, shares) for shares in ((5, 1), (1, 5)))
        stays.carry(parts_of(old, 1, 2))
        carried(admin, group_id, dies, parts_of(old, 1, 2))
        stack.callback(lambda: [admin.heartbeat(group_id, **each.leaving()) for each in stays.all])
        until(lambda: Counter(map(len, owned)) == {5: 1, 1: 1}, lambda: owned)
        planned = [set(each) for each in owned]
        dies.carry(parts_of(new, 2, 2))
        for guest in dies.all[:1]:  # kill -9: the second part is not written, and no heartbeat comes any more
            guest.answered(admin.heartbeat(group_id, **guest.heartbeat()))

        def expired():
            heard(admin, group_id, stays)
            for guest in stays.all:
                guest.answered(admin.heartbeat(group_id, **guest.heartbeat()))
            assert owned == planned
            return len(read_group(admin, group_id).steering) == 2

        until(expired, lambda: read_group(admin, group_id).steering)
        assert read_group(admin, group_id).protocol == "loadwise"


@pytest.mark.kafka
def test_a_broker_without_the_jar_is_refused_with_the_remedy(apache_kafka, topic_name, group_id):
    make_topic(apache_kafka, topic_name, 1)
    with ExitStack() as stack:
        admin = stack.enter_context(connected(apache_kafka, client_id="loadwise-steer"))
        stack.enter_context(member(apache_kafka, group_id, topic_name))
        until(lambda: admin.describe_consumer_group(group_id).members)
        steering = Steering(admin, group_id)
        with pytest.raises(UnreadableGroupError, match=r"no assignor 'loadwise'; put loadwise's jar on the class path"):
            steering.step()
        assert not read_group(admin, group_id).steering


@pytest.fixture(scope="module", params=["loadwise", pytest.param("apache", marks=pytest.mark.kafka)])
def guarded(request):
    """A broker with ACLs; Apache's has no assignor of ours, and answers so once all rights are there."""
    if request.param == "apache":
        yield request.getfixturevalue("secured").addresses["SASL_PLAINTEXT"]
        return
    security = Security(users=PASSWORDS, authorization=Authorization(acls=[], super_users=SUPER_USERS))
    with Coordinator(security=security).in_thread() as coordinator:
        yield coordinator.bootstrap_servers


def test_each_right_that_lacks_is_named_and_these_suffice(guarded, topic_name, group_id, caplog):
    caplog.set_level("INFO", "loadwise.steer")
    owner, asker = (
        Access(address=guarded, mechanism="PLAIN", user=user, password=PASSWORDS[user]) for user in ("owner", "asker")
    )
    rights = AdminClient(owner.librdkafka())

    def allow(operation, kind, name, pattern=ResourcePatternType.LITERAL):
        binding = AclBinding(kind, name, pattern, "User:asker", "*", operation, AclPermissionType.ALLOW)
        for made in rights.create_acls([binding], request_timeout=WAIT_S).values():
            made.result(WAIT_S)

    rights.create_topics([NewTopic(topic_name, 1, 1)])[topic_name].result(WAIT_S)
    config = {key: value for key, value in owner.librdkafka().items() if key != "bootstrap.servers"}
    with ExitStack() as stack:
        everything = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, "User:asker", None, AclOperation.ANY, AclPermissionType.ANY
        )
        stack.callback(lambda: rights.delete_acls([everything])[everything].result(WAIT_S))
        seeing = stack.enter_context(connected(guarded, _settings(owner), client_id="loadwise-steer"))
        stack.enter_context(member(guarded, group_id, topic_name, **config))
        until(lambda: seeing.describe_consumer_group(group_id).members)
        admin = stack.enter_context(connected(guarded, _settings(asker), client_id="loadwise-steer"))
        steering = Steering(admin, group_id)
        stack.callback(steering.leave)
        steering.step()
        assert f"the broker does not describe the group {group_id}" in caplog.text or "GroupAuth" in caplog.text
        allow(AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
        allow(AclOperation.DESCRIBE, ResourceType.TOPIC, topic_name)

        def refused(words):
            try:
                steering.step()
            except UnreadableGroupError as error:
                return words in str(error)
            return words == "joined" and seeing.describe_consumer_group(group_id).assignor_name == "loadwise"

        until(lambda: refused("allow this user READ on the group"), lambda: caplog.text)
        allow(AclOperation.READ, ResourceType.GROUP, group_id)
        until(lambda: refused(f"allow this user DESCRIBE on the topic prefix {TOPIC_PREFIX}"), lambda: caplog.text)
        allow(AclOperation.DESCRIBE, ResourceType.TOPIC, TOPIC_PREFIX, ResourcePatternType.PREFIXED)
        until(lambda: refused("joined") or refused("has no assignor"), lambda: caplog.text)


def _settings(access):
    return {key: value for key, value in access.python().items() if key != "bootstrap_servers"}
