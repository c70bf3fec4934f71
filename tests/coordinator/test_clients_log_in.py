"""Clients that log in, with each mechanism, on our coordinator and on Apache Kafka; and what they tell who may not."""

from __future__ import annotations

import asyncio
import gc
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka_process import jars
from secured_kafka import MODULES, PASSWORDS, PREFIX, SecuredKafka
from topics import WAIT_S

from loadwise.coordinator import Coordinator, Security

TOPIC = f"{PREFIX}logged-in"
USER = "owner"


@pytest.fixture(params=["loadwise", pytest.param("apache", marks=pytest.mark.kafka)])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "apache":
        secured: SecuredKafka = request.getfixturevalue("secured")
        yield secured.addresses["SASL_PLAINTEXT"]
    else:
        with Coordinator(security=Security(users=PASSWORDS)).in_thread() as coordinator:
            yield coordinator.bootstrap_servers


def python_settings(address: str, mechanism: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": password,
    }


def kafka_python(address: str, mechanism: str, password: str) -> str:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.errors import KafkaError

    settings = python_settings(address, mechanism, password)
    try:
        with KafkaProducer(**settings, max_block_ms=WAIT_S * 1000, bootstrap_timeout_ms=1000) as producer:
            producer.send(TOPIC, b"hello").get(timeout=WAIT_S)
    except KafkaError as error:
        gc.collect()  # a producer that fails to begin leaves sockets behind
        return f"{type(error).__name__}: {error}"
    with KafkaConsumer(TOPIC, **settings, group_id=f"{PREFIX}g", auto_offset_reset="earliest") as consumer:
        return bytes(next(consumer).value).decode()


def aiokafka(address: str, mechanism: str, password: str) -> str:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.errors import KafkaError

    settings = python_settings(address, mechanism, password)

    async def run() -> str:
        producer = AIOKafkaProducer(**settings)
        try:
            await producer.start()
            await producer.send_and_wait(TOPIC, b"hello")
        except KafkaError as error:
            return f"{type(error).__name__}: {error}"
        finally:
            await producer.stop()
        async with AIOKafkaConsumer(TOPIC, **settings, group_id=f"{PREFIX}g", auto_offset_reset="earliest") as consumer:
            return bytes((await consumer.getone()).value).decode()

    return asyncio.run(run())


def confluent(address: str, mechanism: str, password: str) -> str:
    from confluent_kafka import Consumer, KafkaError, Producer

    errors: list[KafkaError] = []
    settings = {
        "bootstrap.servers": address, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism,
        "sasl.username": USER, "sasl.password": password, "error_cb": errors.append, "log_level": 0,
    }  # fmt: skip
    producer = Producer(settings)
    producer.produce(TOPIC, b"hello")
    deadline = time.monotonic() + WAIT_S
    while producer.flush(0.1):
        if failed := [each for each in errors if each.code() == KafkaError._AUTHENTICATION]:
            producer.purge()
            return f"{failed[0].name()}: {failed[0].str()}"
        assert time.monotonic() < deadline
    consumer = Consumer(settings | {"group.id": f"{PREFIX}g", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    try:
        while (message := consumer.poll(1)) is None or message.error():
            assert time.monotonic() < deadline
        return bytes(message.value()).decode()
    finally:
        consumer.close()


CLIENTS = [kafka_python, aiokafka, confluent]


@pytest.mark.parametrize("mechanism", MODULES)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_who_has_the_password_is_let_in(address: str, client: Callable[..., str], mechanism: str) -> None:
    assert client(address, mechanism, PASSWORDS[USER]) == "hello"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("mechanism", MODULES)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_who_has_another_password_is_told_so(
    address: str, client: Callable[..., str], mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    told = client(address, mechanism, "wrong-not-to-be-seen") + caplog.text
    assert "not-to-be-seen" not in told
    if client is kafka_python:  # where the connection is closed behind the answer, it reads the answer or not
        assert "Unable to bootstrap" in told
        return
    assert "SaslAuthenticationFailed" in told or "_AUTHENTICATION" in told
    assert ("Invalid username or password" if mechanism == "PLAIN" else f"mechanism {mechanism}") in told


@pytest.mark.kafka
@pytest.mark.parametrize("mechanism", MODULES)
def test_java_clients(address: str, mechanism: str, tmp_path: Path) -> None:
    java = [shutil.which("java") or "java", "-cp", f"{jars()}/*", "org.apache.kafka.tools.TopicCommand"]
    for password, wanted in ((PASSWORDS[USER], ""), ("wrong-not-to-be-seen", "SaslAuthenticationException")):
        config = tmp_path / "client.properties"
        config.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
            f'sasl.jaas.config={MODULES[mechanism]} required username="{USER}" password="{password}";\n'
        )
        asked = [*java, "--bootstrap-server", address, "--command-config", str(config), "--list"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert (done.returncode == 0) == (not wanted), done.stderr
        assert wanted in done.stdout + done.stderr
        assert "not-to-be-seen" not in done.stdout + done.stderr
