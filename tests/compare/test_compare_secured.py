"""A running group on an Apache Kafka that asks for TLS and a password: what ``--command-config`` is for."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer
from polled import polled, settle
from secured_kafka import PREFIX, SecuredKafka
from topics import WAIT_S, fill, make_topic

from loadwise.running_group.command_config import client_settings

pytestmark = pytest.mark.kafka

Compare = Callable[[Mapping[str, str], int], subprocess.CompletedProcess[str]]

# kafka-python forgets to close the sockets of connections that were refused: in a process of its own, that is nothing.
PROGRAM = "from loadwise.running_group import admin; admin._TIMEOUT_MS = {}; from loadwise.cli import main; main()"
PATIENT_MS = 60_000


def properties(settings: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())


@pytest.fixture(scope="module")
def group(secured: SecuredKafka) -> Iterator[str]:
    """A group with one member of the user ``reader``, which reads a topic of two partitions with 20 and 10 records."""
    name = f"{PREFIX}{uuid.uuid4().hex[:12]}"
    make_topic(secured.open_address, name, 2)
    fill(secured.open_address, name, [20, 10])
    settings: dict[str, Any] = {
        "bootstrap_servers": secured.address,
        "group_id": name,
        "enable_auto_commit": False,
        "heartbeat_interval_ms": 100,
        **client_settings(properties(secured.settings("reader")), "a member's settings"),
    }
    with polled(KafkaConsumer, name, **settings) as member:
        settle([member], 2)
        yield name


@pytest.fixture
def compare(secured: SecuredKafka, group: str, tmp_path: Path) -> Compare:
    """``compare(settings, timeout_ms)``: what the command says of the group with these in its ``--command-config``."""

    def run(settings: Mapping[str, str], timeout_ms: int) -> subprocess.CompletedProcess[str]:
        config = tmp_path / "client.properties"
        config.write_text(properties(settings))
        where = ["--bootstrap-servers", secured.address, "--group", group, "--command-config", str(config)]
        command = [sys.executable, "-c", PROGRAM.format(timeout_ms), "compare", *where, "--json"]
        deadline = time.monotonic() + WAIT_S
        while True:
            done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
            if "is rebalancing" not in done.stderr or time.monotonic() > deadline:  # which a live group may at any time
                return done

    return run


@pytest.mark.parametrize(("user", "mechanism"), [("reader", "PLAIN"), ("looker", "SCRAM-SHA-512")])
def test_a_group_on_a_secured_broker(secured: SecuredKafka, compare: Compare, user: str, mechanism: str) -> None:
    """It takes no right but DESCRIBE, on the group and its topics."""
    result = compare(secured.settings(user, mechanism), PATIENT_MS)
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["assignors"][0]["mean_load"] == 30
    assert "runs under range" in told["about"]


def test_a_user_without_rights(secured: SecuredKafka, group: str, compare: Compare) -> None:
    result = compare(secured.settings("stranger"), PATIENT_MS)
    assert result.returncode == 1
    assert f"loadwise compare: the group {group} cannot be read: " in result.stderr
    assert "GroupAuthorizationFailedError" in result.stderr


def test_who_is_not_let_in_is_told_why(secured: SecuredKafka, compare: Compare) -> None:
    result = compare(secured.settings("reader", password="wrong-not-to-be-seen"), PATIENT_MS)
    assert result.returncode == 1
    assert f"{secured.address} refuses the login (" in result.stderr
    assert "SaslAuthenticationFailed" in result.stderr
    assert "see security.protocol, sasl.* and ssl.* in --command-config" in result.stderr
    assert "not-to-be-seen" not in result.stderr
