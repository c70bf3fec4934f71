"""A leader that is forbidden to read its group's offsets, by ACLs of Apache Kafka, while it may read records."""

import logging
import uuid

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
)
from confluent_kafka.admin import ResourceType as Kind
from secured_kafka import PASSWORDS
from topics import WAIT_S, fill, make_topic, until

from loadwise.assignor.clients.aiokafka.lag import AiokafkaLag
from loadwise.assignor.clients.kafka_python.lag import KafkaPythonLag

pytestmark = pytest.mark.kafka

ASKER = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "asker",
    "sasl_plain_password": PASSWORDS["asker"],
}


def rule(kind, name, operation, permission=AclPermissionType.ALLOW):
    return AclBinding(kind, name, ResourcePatternType.LITERAL, "User:asker", "*", operation, permission)


def add(admin, *rules):
    """Add rules, and wait until the broker goes by them: Kafka answers when its controller has them."""
    for made in admin.create_acls(list(rules), request_timeout=WAIT_S).values():
        made.result(WAIT_S)
    for each in rules:
        of = each.restype, each.name, each.resource_pattern_type, each.principal, each.host
        same = AclBindingFilter(*of, each.operation, each.permission_type)
        until(lambda same=same: admin.describe_acls(same).result(WAIT_S), lambda each=each: f"{each} is not in force")


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
async def test_a_leader_that_may_not_read_offsets_any_more_goes_on(secured, group, client, caplog, until):
    """Who may READ a group stays a member of it, but OffsetFetch asks for DESCRIBE: readings fail until it may."""
    name = f"asked-{uuid.uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": secured.open_address, "log_level": 0})
    make_topic(secured.open_address, name, 2)
    add(admin, rule(Kind.TOPIC, name, AclOperation.READ), rule(Kind.GROUP, name, AclOperation.READ))
    group.settings |= {"bootstrap_servers": secured.addresses["SASL_PLAINTEXT"], "group_id": name}
    member = await group.join(client, name, auto_offset_reset="earliest", lag_interval_s=0.2, **ASKER)
    await group.settle(2)
    leader = member.consumer.assignor.participant.leader
    await until(lambda: leader.has_fresh_reading and leader.leads)
    with caplog.at_level(logging.WARNING):
        add(admin, rule(Kind.GROUP, name, AclOperation.DESCRIBE, AclPermissionType.DENY))
        await until(lambda: leader.lag.failures > 2)
        fill(secured.open_address, name, [10, 10])
        if client == "aiokafka":
            assert len([await member.consumer.getone() for _ in range(20)]) == 20
        else:
            positions = member.consumer._subscription.all_consumed_offsets
            await until(lambda: sum(at.offset for at in positions().values()) == 20)
    deny = AclBindingFilter(
        Kind.GROUP, name, ResourcePatternType.LITERAL, "User:asker", "*", AclOperation.DESCRIBE, AclPermissionType.DENY
    )
    admin.delete_acls([deny], request_timeout=WAIT_S)[deny].result(WAIT_S)
    await until(lambda: leader.has_fresh_reading)
    for what in ("The lag of group", "The switch of group"):
        logged = [each.getMessage() for each in caplog.records if each.getMessage().startswith(what)]
        assert len(logged) == 1, "once, however often it is tried"
        assert "GroupAuthorizationFailed" in logged[0]
    assert leader.leads
    assert len(member.owned()) == 2


@pytest.mark.parametrize("make", [KafkaPythonLag, AiokafkaLag])
async def test_of_topics_that_may_not_be_described_nothing_is_read_and_the_others_are(secured, make, until):
    """Members may read different topics, and the one that leads need not have the rights of all."""
    allowed, forbidden = (f"{kind}-{uuid.uuid4().hex[:12]}" for kind in ("allowed", "forbidden"))
    admin = AdminClient({"bootstrap.servers": secured.open_address, "log_level": 0})
    for name in (allowed, forbidden):
        make_topic(secured.open_address, name, 2)
        fill(secured.open_address, name, [3, 4])
    add(admin, rule(Kind.TOPIC, allowed, AclOperation.READ), rule(Kind.GROUP, allowed, AclOperation.READ))
    servers = secured.addresses["SASL_PLAINTEXT"]
    lag = make(
        allowed,
        forbidden,
        group_id=allowed,
        auto_offset_reset="earliest",
        interval_s=0.2,
        bootstrap_servers=servers,
        **ASKER,
    )
    lag.start()
    try:
        await until(lambda: lag.snapshot([allowed]) is not None and allowed in lag.snapshot([allowed]).load)
        read = lag.snapshot([allowed, forbidden]).load
        assert read[allowed].tolist() == [3, 4]
        assert forbidden not in read
        assert lag.failures == 0
    finally:
        closing = lag.close()
        if closing is not None:
            await closing
