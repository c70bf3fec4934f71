"""Real clients that produce and consume one record on a broker that asks who they are."""

from __future__ import annotations

import asyncio
import gc
import ssl
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_process import java_program, short_lived_jvm
from secured_kafka import MODULES, OAUTH_MODULE, PREFIX
from topics import WAIT_S

TOPIC = f"{PREFIX}logged-in"
GROUP = f"{PREFIX}g"


@dataclass(frozen=True, kw_only=True)
class Access:
    """How a client comes in."""

    address: str
    protocol: str = "SASL_PLAINTEXT"
    mechanism: str | None = None
    user: str = ""
    password: str = ""
    authority: Path | None = None
    """Whom it believes."""
    certificate: Path | None = None
    """Its own key and certificate, in one file."""

    token: str = ""
    """What it logs in with, if its mechanism is OAUTHBEARER."""

    def python(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"bootstrap_servers": self.address, "security_protocol": self.protocol}
        if self.mechanism == "OAUTHBEARER":
            settings["sasl_mechanism"] = self.mechanism
        elif self.mechanism is not None:
            settings |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.user,
                "sasl_plain_password": self.password,
            }
        if self.authority is not None:
            context = ssl.create_default_context(cafile=self.authority)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate)
            settings["ssl_context"] = context
        return settings

    def librdkafka(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap.servers": self.address, "security.protocol": self.protocol, "log_level": 0,
        }  # fmt: skip
        if self.mechanism == "OAUTHBEARER":
            settings |= {"sasl.mechanism": self.mechanism, "oauth_cb": lambda _: (self.token, time.time() + 600)}
        elif self.mechanism is not None:
            settings |= {
                "sasl.mechanism": self.mechanism, "sasl.username": self.user, "sasl.password": self.password,
            }  # fmt: skip
        if self.authority is not None:
            settings["ssl.ca.location"] = str(self.authority)
        if self.certificate is not None:
            settings |= {"ssl.key.location": str(self.certificate), "ssl.certificate.location": str(self.certificate)}
        return settings

    def java(self) -> str:
        lines = {"security.protocol": self.protocol}
        if self.mechanism is not None:
            lines["sasl.mechanism"] = self.mechanism
            login = f'username="{self.user}" password="{self.password}"'
            if self.mechanism == "OAUTHBEARER":
                login = f'unsecuredLoginStringClaim_sub="{self.user}"'
            module = OAUTH_MODULE if self.mechanism == "OAUTHBEARER" else MODULES[self.mechanism]
            lines["sasl.jaas.config"] = f"{module} required {login};"
        if self.authority is not None:
            lines |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.authority)}
        if self.certificate is not None:
            lines |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.certificate)}
        return "".join(f"{name}={value}\n" for name, value in lines.items())


def kafka_python(access: Access, within_s: float = WAIT_S) -> str:
    """One that is refused tries again until ``within_s`` is over."""
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.errors import KafkaError
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return access.token

    settings = access.python()
    if access.mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = Provider()
    try:
        with KafkaProducer(**settings, max_block_ms=WAIT_S * 1000, bootstrap_timeout_ms=within_s * 1000) as producer:
            producer.send(TOPIC, b"hello").get(timeout=WAIT_S)
    except KafkaError as error:
        gc.collect()  # a producer that fails to begin leaves sockets behind
        return f"{type(error).__name__}: {error}"
    with KafkaConsumer(TOPIC, **settings, group_id=GROUP, auto_offset_reset="earliest") as consumer:
        return bytes(next(consumer).value).decode()


def aiokafka(access: Access) -> str:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.abc import AbstractTokenProvider
    from aiokafka.errors import KafkaError

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return access.token

    settings = access.python()
    if access.mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = Provider()

    async def run() -> str:
        producer = AIOKafkaProducer(**settings)
        try:
            await producer.start()
            await producer.send_and_wait(TOPIC, b"hello")
        except KafkaError as error:
            return f"{type(error).__name__}: {error}"
        finally:
            await producer.stop()
        async with AIOKafkaConsumer(TOPIC, **settings, group_id=GROUP, auto_offset_reset="earliest") as consumer:
            return bytes((await consumer.getone()).value).decode()

    return asyncio.run(run())


def confluent(access: Access) -> str:
    from confluent_kafka import Consumer, KafkaError, Producer

    errors: list[KafkaError] = []
    settings = access.librdkafka() | {"error_cb": errors.append}
    producer = Producer(settings)
    producer.produce(TOPIC, b"hello")
    deadline = time.monotonic() + WAIT_S
    while producer.flush(0.1):
        failures = (KafkaError._AUTHENTICATION, KafkaError._SSL)
        if failed := [each for each in errors if each.code() in failures]:
            producer.purge()
            return f"{failed[0].name()}: {failed[0].str()}"
        assert time.monotonic() < deadline
    consumer = Consumer(settings | {"group.id": GROUP, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    try:
        while (message := consumer.poll(1)) is None or message.error():
            assert time.monotonic() < deadline
        return bytes(message.value()).decode()
    finally:
        consumer.close()


def java(
    access: Access, folder: Path, *arguments: str, command: str = "TopicCommand"
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's tools with ``--list``, if there are no other arguments; by default ``kafka-topics.sh``."""
    config = folder / "client.properties"
    config.write_text(access.java())
    program = java_program(f"org.apache.kafka.tools.{command}", "-Xmx128m", *short_lived_jvm())
    asked = [
        *program,
        "--bootstrap-server",
        access.address,
        "--command-config",
        str(config),
        *(arguments or ["--list"]),
    ]
    return subprocess.run(asked, capture_output=True, text=True, timeout=WAIT_S, check=False)


CLIENTS = [kafka_python, aiokafka, confluent]
