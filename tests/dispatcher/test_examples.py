"""The producers' examples run as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from topics import WAIT_S

from loadwise.coordinator import Coordinator

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("script", ["producer_kafka_python.py", "producer_aiokafka.py", "producer_confluent_kafka.py"])
def test_a_producer(script: str) -> None:
    with Coordinator(brokers=3).in_thread() as coordinator:
        coordinator.create_topic("t", 6)
        command = [sys.executable, EXAMPLES / script, "t", "--bootstrap-servers", coordinator.bootstrap_servers]
        ran = subprocess.run(
            [*command, "--records", "3000"], capture_output=True, text=True, timeout=WAIT_S, check=False
        )
    assert ran.returncode == 0, ran.stderr
    brokers = [line for line in ran.stdout.splitlines() if line.startswith("broker ")]
    records = {line.split(":")[0]: int(line.split()[2].replace(",", "")) for line in brokers}
    assert records.keys() <= {"broker 1", "broker 2", "broker 3"}
    assert sum(records.values()) == 3000
