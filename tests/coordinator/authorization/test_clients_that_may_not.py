"""What real clients raise that lack a right, on our coordinator and on Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from secured_clients import Access, java
from secured_clients import confluent as confluent_round_trip
from secured_kafka import PASSWORDS, PREFIX, RIGHTS, SUPER_USERS, SecuredKafka
from topics import WAIT_S, until

from loadwise.coordinator import Acl, Authorization, Certificates, Coordinator, Security, TlsFiles

TOPIC = f"{PREFIX}refused"
GROUP = f"{PREFIX}g"
ACLS = [
    Acl.of(f"User:{user}", right, kind, PREFIX, pattern_type="PREFIXED")
    for user, rights in RIGHTS.items()
    for kind, right in rights
]


@pytest.fixture(scope="module", params=["loadwise", pytest.param("apache", marks=pytest.mark.kafka)])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """A broker with a topic that its users may do different things to."""
    from confluent_kafka.admin import AdminClient, NewTopic

    def prepared(found: str) -> str:
        admin = AdminClient(access(found, "owner").librdkafka())
        if TOPIC not in admin.list_topics(timeout=WAIT_S).topics:  # Kafka may have it: in another order, it comes again
            admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(WAIT_S)
            until(lambda: TOPIC in admin.list_topics(timeout=WAIT_S).topics)
        return found

    if request.param == "apache":
        secured: SecuredKafka = request.getfixturevalue("secured")
        yield prepared(secured.addresses["SASL_PLAINTEXT"])
    else:
        authorization = Authorization(acls=ACLS, super_users=SUPER_USERS)
        security = Security(users=PASSWORDS, authorization=authorization)
        with Coordinator(security=security).in_thread() as coordinator:
            yield prepared(coordinator.bootstrap_servers)


def access(address: str, user: str) -> Access:
    return Access(address=address, mechanism="PLAIN", user=user, password=PASSWORDS[user])


def kafka_python(who: Access, wanted: str) -> str:
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
    from kafka.admin import NewTopic
    from kafka.errors import KafkaError

    settings = who.python()
    try:
        match wanted:
            case "produce":
                with KafkaProducer(**settings, max_block_ms=WAIT_S * 1000) as producer:
                    producer.send(TOPIC, b"x").get(timeout=WAIT_S)
            case "transact":
                with KafkaProducer(**settings, transactional_id=f"{PREFIX}x") as producer:
                    producer.init_transactions()
            case "consume":
                with KafkaConsumer(TOPIC, **settings, group_id=GROUP) as consumer:
                    until(lambda: consumer.poll(200))
            case "create":
                with KafkaAdminClient(**settings) as admin:
                    admin.create_topics([NewTopic(f"{TOPIC}-2", 1, 1)])
    except KafkaError as error:
        return type(error).__name__
    return "nothing"


def aiokafka(who: Access, wanted: str) -> str:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic
    from aiokafka.errors import KafkaError

    settings = who.python()

    async def run() -> str:
        match wanted:
            case "produce":
                async with AIOKafkaProducer(**settings) as producer:
                    await producer.send_and_wait(TOPIC, b"x")
            case "transact":
                transactional = AIOKafkaProducer(**settings, transactional_id=f"{PREFIX}x")
                try:
                    await transactional.start()
                finally:
                    await transactional.stop()
            case "consume":
                consumer = AIOKafkaConsumer(TOPIC, **settings, group_id=GROUP)
                try:
                    await consumer.start()
                    await asyncio.wait_for(consumer.getone(), WAIT_S)
                finally:
                    await consumer.stop()
            case "create":
                admin = AIOKafkaAdminClient(**settings)
                await admin.start()
                try:
                    answer = await admin.create_topics([NewTopic(f"{TOPIC}-2", 1, 1)])
                    return str(answer.topic_errors[0][1])  # which nothing is raised for
                finally:
                    await admin.close()
        return "nothing"

    try:
        return asyncio.run(run())
    except KafkaError as error:
        return type(error).__name__


def confluent(who: Access, wanted: str) -> str:
    from confluent_kafka import Consumer, KafkaException, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    settings = who.librdkafka()
    told: list[Any] = []
    try:
        match wanted:
            case "produce":
                producer = Producer(settings)
                producer.produce(TOPIC, b"x", on_delivery=lambda error, _: told.append(error))
                producer.flush(WAIT_S)
            case "transact":
                Producer(settings | {"transactional.id": f"{PREFIX}x"}).init_transactions(WAIT_S)
            case "consume":
                consumer = Consumer(settings | {"group.id": GROUP})
                consumer.subscribe([TOPIC])
                try:
                    until(
                        lambda: ((message := consumer.poll(0.2)) is not None and told.append(message.error())) or told
                    )
                finally:
                    consumer.close()
            case "create":
                admin = AdminClient(settings)
                admin.create_topics([NewTopic(f"{TOPIC}-2", 1, 1)])[f"{TOPIC}-2"].result(WAIT_S)
    except KafkaException as error:
        told.append(error.args[0])
    return told[0].name() if told and told[0] is not None else "nothing"


CLIENTS = [kafka_python, aiokafka, confluent]
TOLD = {
    ("stranger", "produce"): (
        "TopicAuthorizationFailedError", "TopicAuthorizationFailedError", "TOPIC_AUTHORIZATION_FAILED"),
    # Who may write nowhere gets no producer id (CLUSTER_AUTHORIZATION_FAILED), and kafka-python's producer wants one.
    ("reader", "produce"): ("KafkaError", "TopicAuthorizationFailedError", "TOPIC_AUTHORIZATION_FAILED"),
    ("stranger", "consume"): (
        "GroupAuthorizationFailedError", "TopicAuthorizationFailedError", "GROUP_AUTHORIZATION_FAILED"),
    ("looker", "consume"): (
        "GroupAuthorizationFailedError", "GroupAuthorizationFailedError", "GROUP_AUTHORIZATION_FAILED"),
    ("reader", "transact"): (
        "TransactionalIdAuthorizationFailedError", "TransactionalIdAuthorizationFailed",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    ("reader", "create"): ("TopicAuthorizationFailedError", "29", "TOPIC_AUTHORIZATION_FAILED"),
}  # fmt: skip
"""What kafka-python, aiokafka and confluent-kafka tell of a refusal."""


@pytest.mark.parametrize(("user", "wanted"), TOLD, ids="-".join)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_who_lacks_a_right_hears_which(
    address: str, client: Callable[[Access, str], str], user: str, wanted: str
) -> None:
    assert client(access(address, user), wanted) == TOLD[user, wanted][CLIENTS.index(client)]


@pytest.mark.kafka
def test_kafka_acls_adds_lists_and_removes(address: str, tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        done = java(access(address, "owner"), tmp_path, *arguments, command="AclCommand")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    about = ("--topic", f"{PREFIX}acls", "--resource-pattern-type", "prefixed", "--allow-principal", "User:alice")
    assert "Adding ACLs for resource" in run("--add", "--producer", *about)
    wanted = [
        f"(principal=User:alice, host=*, operation={operation}, permissionType=ALLOW)"
        for operation in ("WRITE", "DESCRIBE", "CREATE")
    ]

    def listed(*which: str) -> str:
        return run("--list", *which)

    # Kafka's broker hears of what its controller has changed some time after the answer.
    until(lambda: all(each in listed("--principal", "User:alice") for each in wanted), listed)
    run("--remove", "--force", "--producer", *about)
    until(lambda: "User:alice" not in listed("--topic", f"{PREFIX}acls"), listed)


def test_a_certificate_tells_who_a_client_is(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    tls = TlsFiles(keystore=certificates.broker, truststore=certificates.authority, client_auth="required")
    acls = [Acl.of(certificates.principal("orders"), "ALL", kind, "*") for kind in ("TOPIC", "GROUP")]
    security = Security(protocol="SSL", tls=tls, authorization=Authorization(acls=acls))
    with Coordinator(security=security).in_thread() as coordinator:
        for name, told in (("orders", "hello"), ("stranger", "TOPIC_AUTHORIZATION_FAILED")):
            who = Access(
                address=coordinator.bootstrap_servers,
                protocol="SSL",
                authority=certificates.authority,
                certificate=certificates.client(name),
            )
            assert (confluent_round_trip(who) if name == "orders" else confluent(who, "produce")) == told
