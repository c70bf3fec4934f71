"""Kafka's command-line programs, run on Apache Kafka and on ours in one process of Java."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_process import kafka_from_jars
from kafka_tools import Tools
from missing import skipped_where_missing
from programs import compiled_java

from loadwise.coordinator import Coordinator, ThreadedCoordinator

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def tools() -> Iterator[Tools]:
    """The process that runs the programs."""
    command = compiled_java(HERE / "Tools.java", log_level="off")
    running = Tools([*command, "Tools"])
    yield running
    running.close()


@pytest.fixture(scope="session")
def fresh_kafka() -> Iterator[str]:
    """An Apache Kafka that nothing but these tests uses: some programs list all that there is."""
    with skipped_where_missing(), kafka_from_jars() as addresses:
        yield addresses["PLAINTEXT"]


@pytest.fixture(scope="session")
def fresh_coordinator() -> Iterator[ThreadedCoordinator]:
    """One of ours, that nothing but these tests uses."""
    with Coordinator().in_thread() as running:
        yield running
