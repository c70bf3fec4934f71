"""A wrong password or certificate, or no broker: each client's consumer says so soon."""

from __future__ import annotations

import asyncio
import gc
import itertools
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from bootstrap_deadline import Deadline, deadline_of_bootstrap, give_up_soon_after_failures
from kafka.errors import KafkaTimeoutError
from kafka.net.inet import KafkaNetSocket
from secured_clients import Access
from secured_kafka import PASSWORDS

from loadwise.assignor.clients.aiokafka import aiokafka_consumer
from loadwise.assignor.clients.confluent_kafka import confluent_consumer
from loadwise.assignor.clients.kafka_python import kafka_python_consumer
from loadwise.coordinator import Certificates, Coordinator, Security, TlsFiles

LONG_MS = 3_600_000
"""The test would hang if a refusal were only noticed after the client's own timeout."""
LOGIN = Access(address="", mechanism="PLAIN", user="owner", password=PASSWORDS["owner"])


def kafka_python(access: Access) -> None:
    try:
        kafka_python_consumer("t", group_id="g", bootstrap_timeout_ms=LONG_MS, **access.python())
    finally:
        gc.collect()  # a consumer that fails to begin leaves sockets behind


def aiokafka(access: Access) -> None:
    async def start() -> None:
        consumer = aiokafka_consumer("t", group_id="g", **access.python())
        try:
            await consumer.start()
        finally:
            await consumer.stop()

    asyncio.run(start())


def confluent(access: Access) -> None:
    consumer = confluent_consumer(access.librdkafka() | {"group.id": "g"})
    try:
        consumer.subscribe(["t"])
    finally:
        consumer.close()
        gc.collect()


CLIENTS = [kafka_python, aiokafka, confluent]


@pytest.fixture
def deadline(monkeypatch: pytest.MonkeyPatch) -> Deadline:
    return deadline_of_bootstrap(monkeypatch)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    give_up_soon_after_failures(monkeypatch)


@contextmanager
def listening(**security: Any) -> Iterator[str]:
    with Coordinator(topics={"t": 1}, security=Security(**security)).in_thread() as coordinator:
        yield coordinator.bootstrap_servers


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"password": "wrong"}, "Invalid username or password"), ({"mechanism": "SCRAM-SHA-256"}, "SaslMechanism")],
)
def test_a_refused_login_is_raised(client: Callable[[Access], None], wrong: dict[str, str], message: str) -> None:
    with (
        listening(protocol="SASL_PLAINTEXT", users=PASSWORDS, mechanisms=("PLAIN",)) as address,
        pytest.raises(Exception, match=message),
    ):
        client(replace(LOGIN, address=address, **wrong))


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
@pytest.mark.parametrize("trusts", [False, True], ids=["another authority", "no own certificate"])
def test_a_refused_certificate_is_raised(
    client: Callable[[Access], None], tmp_path_factory: pytest.TempPathFactory, trusts: bool
) -> None:
    ours, others = (Certificates(tmp_path_factory.mktemp("certificates")) for _ in range(2))
    tls = TlsFiles(keystore=ours.broker, truststore=ours.authority, client_auth="required" if trusts else "none")
    with (
        listening(protocol="SSL", tls=tls) as address,
        pytest.raises(Exception, match=r"(?i)no TLS with .*certificate"),
    ):
        client(Access(address=address, protocol="SSL", authority=(ours if trusts else others).authority))


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_login_that_is_missing_is_named(client: Callable[[Access], None]) -> None:
    with (
        listening(protocol="SASL_PLAINTEXT", users=PASSWORDS, mechanisms=("PLAIN",)) as address,
        pytest.raises(Exception, match=rf"no Kafka answers at {address} \(.* does it require a login by SASL"),
    ):
        client(Access(address=address, protocol="PLAINTEXT"))


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_missing_tls_is_named(client: Callable[[Access], None], tmp_path_factory: pytest.TempPathFactory) -> None:
    tls = TlsFiles(keystore=Certificates(tmp_path_factory.mktemp("certificates")).broker)
    with (
        listening(protocol="SSL", tls=tls) as address,
        pytest.raises(Exception, match=rf"no Kafka answers at {address} \(.*: does it require TLS\?"),
    ):
        client(Access(address=address, protocol="PLAINTEXT"))


@pytest.mark.usefixtures("soon")
def test_an_attempt_without_an_answer_hides_no_earlier_reason() -> None:
    """kafka-python tries again until its time is over; the last attempt may have a millisecond."""

    def hang_up_once() -> None:  # then the system takes connections, and nothing answers
        connection, _ = server.accept()
        with connection:
            connection.recv(1 << 16)

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        pool.submit(hang_up_once)
        with pytest.raises(Exception, match=rf"no Kafka answers at {address} \(.*: does it require TLS\?"):
            kafka_python(Access(address=address, protocol="PLAINTEXT"))


def test_an_attempt_that_does_not_connect_in_time_hides_no_earlier_reason(
    deadline: Deadline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time may be over before the system has connected it, which kafka-python calls a connection error."""
    connect, attempts = KafkaNetSocket.connect, itertools.count()

    async def connect_once(*args: Any, **options: Any) -> socket.socket:
        if next(attempts):
            deadline.comes()
            raise KafkaTimeoutError("Connection timed out")
        connected: socket.socket = await connect(*args, **options)
        return connected

    monkeypatch.setattr(KafkaNetSocket, "connect", connect_once)
    with (
        listening(protocol="SASL_PLAINTEXT", users=PASSWORDS, mechanisms=("PLAIN",)) as address,
        pytest.raises(Exception, match=rf"no Kafka answers at {address} \(.* does it require a login by SASL"),
    ):
        kafka_python(Access(address=address, protocol="PLAINTEXT"))
    assert next(attempts) > 1


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_login_that_is_not_asked_for_is_named(client: Callable[[Access], None]) -> None:
    with (
        listening(protocol="PLAINTEXT") as address,
        pytest.raises(Exception, match=rf"{address} asks for no login by SASL; use security_protocol=PLAINTEXT"),
    ):
        client(replace(LOGIN, address=address))


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_tls_that_the_broker_does_not_use_is_named(
    client: Callable[[Access], None], tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Certificates(tmp_path_factory.mktemp("certificates")).authority
    with (
        listening(protocol="PLAINTEXT") as address,
        pytest.raises(Exception, match=rf"no Kafka answers at {address} \(.*: does its listener use TLS\?"),
    ):
        client(Access(address=address, protocol="SSL", authority=authority))
    assert "(a TLS client?)" in caplog.text


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_broker_that_is_down_is_named(client: Callable[[Access], None], nowhere: str) -> None:
    with pytest.raises(Exception, match=rf"no Kafka answers at {nowhere} \(.*(111|61)"):
        client(Access(address=nowhere, protocol="PLAINTEXT"))
