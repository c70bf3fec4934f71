"""Clients that log in, with each mechanism, on our coordinator and on Apache Kafka; and what they tell who may not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from oauth_tokens import jws
from secured_clients import CLIENTS, Access, aiokafka, confluent, java
from secured_kafka import MODULES, PASSWORDS, SecuredKafka
from topics import WAIT_S

from loadwise.coordinator import Coordinator, Security

USER = "owner"
MECHANISMS = (*MODULES, "OAUTHBEARER")


def token(lifetime_s: float = 600) -> str:
    now_s = int(time.time())
    return jws({"sub": USER, "iat": now_s - 60, "exp": now_s + lifetime_s})


@pytest.fixture(params=["loadwise", pytest.param("apache", marks=pytest.mark.kafka)])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "apache":
        secured: SecuredKafka = request.getfixturevalue("secured")
        yield secured.addresses["SASL_PLAINTEXT"]
    else:
        with Coordinator(security=Security(users=PASSWORDS, mechanisms=MECHANISMS)).in_thread() as coordinator:
            yield coordinator.bootstrap_servers


@pytest.mark.parametrize("mechanism", MODULES)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_who_has_the_password_is_let_in(address: str, client: Callable[[Access], str], mechanism: str) -> None:
    assert client(Access(address=address, mechanism=mechanism, user=USER, password=PASSWORDS[USER])) == "hello"


@pytest.mark.parametrize("mechanism", MODULES)
@pytest.mark.parametrize("client", [aiokafka, confluent], ids=lambda client: client.__name__)
def test_who_has_another_password_is_told_so(
    address: str, client: Callable[[Access], str], mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    access = Access(address=address, mechanism=mechanism, user=USER, password="wrong-not-to-be-seen")
    told = client(access) + caplog.text
    assert "not-to-be-seen" not in told
    assert "SaslAuthenticationFailed" in told or "_AUTHENTICATION" in told
    assert ("Invalid username or password" if mechanism == "PLAIN" else f"mechanism {mechanism}") in told


@pytest.mark.parametrize("mechanism", MODULES)
def test_a_kafka_python_client_with_another_password_is_not_let_in(address: str, mechanism: str) -> None:
    """In a process of its own: a constructor of kafka-python that fails leaves sockets open that no test can close."""
    program = (
        f"import sys; sys.path[:0] = {sys.path!r}; from secured_clients import Access, kafka_python; "
        f"print(kafka_python(Access(address={address!r}, mechanism={mechanism!r}, user={USER!r}, "
        "password='wrong-not-to-be-seen'), within_s=1))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 0, done.stderr
    # Where the connection is closed behind the answer, it reads the answer or it does not.
    assert "Unable to bootstrap" in done.stdout
    assert "not-to-be-seen" not in done.stdout + done.stderr


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_who_has_a_token_is_let_in(address: str, client: Callable[[Access], str]) -> None:
    assert client(Access(address=address, mechanism="OAUTHBEARER", token=token())) == "hello"


def test_whose_token_has_expired_is_told_so(address: str) -> None:
    # aiokafka takes the broker's refusal for the end of the login, and kafka-python leaves sockets open.
    told = confluent(Access(address=address, mechanism="OAUTHBEARER", token=token(-5)))
    assert told.startswith("_AUTHENTICATION: ")
    assert "invalid_token" in told


@pytest.mark.kafka
def test_a_java_client_with_a_token(address: str, tmp_path: Path) -> None:
    done = java(Access(address=address, mechanism="OAUTHBEARER", user=USER), tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.kafka
@pytest.mark.parametrize("mechanism", MODULES)
def test_java_clients(address: str, mechanism: str, tmp_path: Path) -> None:
    for password, wanted in ((PASSWORDS[USER], ""), ("wrong-not-to-be-seen", "SaslAuthenticationException")):
        done = java(Access(address=address, mechanism=mechanism, user=USER, password=password), tmp_path)
        assert (done.returncode == 0) == (not wanted), done.stderr
        assert wanted in done.stdout + done.stderr
        assert "not-to-be-seen" not in done.stdout + done.stderr
