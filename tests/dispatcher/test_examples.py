"""The producers' examples run as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from topics import WAIT_S, make_topic

from loadwise.coordinator import Coordinator

EXAMPLES = Path(__file__).parents[2] / "examples"


SCRIPTS = ["producer_kafka_python.py", "producer_aiokafka.py", "producer_confluent_kafka.py"]


def records_of_brokers(script: str, address: str, topic: str) -> dict[str, int]:
    """Run an example; return how many records it says that each broker got."""
    command = [sys.executable, EXAMPLES / script, topic, "--bootstrap-servers", address, "--records", "3000"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert ran.returncode == 0, ran.stderr
    lines = [line for line in ran.stdout.splitlines() if line.startswith("broker ")]
    return {line.split(":")[0]: int(line.split()[2].replace(",", "")) for line in lines}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_producer(script: str) -> None:
    with Coordinator(brokers=3).in_thread() as coordinator:
        coordinator.create_topic("t", 6)
        records = records_of_brokers(script, coordinator.bootstrap_servers, "t")
    assert records.keys() <= {"broker 1", "broker 2", "broker 3"}
    assert sum(records.values()) == 3000


@pytest.mark.kafka
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_producer_on_apache_kafka(script: str, apache_kafka: str, topic_name: str) -> None:
    make_topic(apache_kafka, topic_name, 6)
    assert sum(records_of_brokers(script, apache_kafka, topic_name).values()) == 3000
