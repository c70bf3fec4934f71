"""Clients that log in, with each mechanism, on our coordinator and on Apache Kafka; and what they tell who may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from secured_clients import CLIENTS, Access, aiokafka, confluent, java
from secured_kafka import MODULES, PASSWORDS, SecuredKafka

from loadwise.coordinator import Coordinator, Security

USER = "owner"


@pytest.fixture(params=["loadwise", pytest.param("apache", marks=pytest.mark.kafka)])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "apache":
        secured: SecuredKafka = request.getfixturevalue("secured")
        yield secured.addresses["SASL_PLAINTEXT"]
    else:
        with Coordinator(security=Security(users=PASSWORDS)).in_thread() as coordinator:
            yield coordinator.bootstrap_servers


@pytest.mark.parametrize("mechanism", MODULES)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_who_has_the_password_is_let_in(address: str, client: Callable[[Access], str], mechanism: str) -> None:
    assert client(Access(address=address, mechanism=mechanism, user=USER, password=PASSWORDS[USER])) == "hello"


@pytest.mark.parametrize("mechanism", MODULES)
# Not kafka-python: its constructor fails, and leaves sockets open that no test can close.
@pytest.mark.parametrize("client", [aiokafka, confluent], ids=lambda client: client.__name__)
def test_who_has_another_password_is_told_so(
    address: str, client: Callable[[Access], str], mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    access = Access(address=address, mechanism=mechanism, user=USER, password="wrong-not-to-be-seen")
    told = client(access) + caplog.text
    assert "not-to-be-seen" not in told
    assert "SaslAuthenticationFailed" in told or "_AUTHENTICATION" in told
    assert ("Invalid username or password" if mechanism == "PLAIN" else f"mechanism {mechanism}") in told


@pytest.mark.kafka
@pytest.mark.parametrize("mechanism", MODULES)
def test_java_clients(address: str, mechanism: str, tmp_path: Path) -> None:
    for password, wanted in ((PASSWORDS[USER], ""), ("wrong-not-to-be-seen", "SaslAuthenticationException")):
        done = java(Access(address=address, mechanism=mechanism, user=USER, password=password), tmp_path)
        assert (done.returncode == 0) == (not wanted), done.stderr
        assert wanted in done.stdout + done.stderr
        assert "not-to-be-seen" not in done.stdout + done.stderr
