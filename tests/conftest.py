"""What all tests share: one coordinator and one Kafka for the session, names of their own, hypothesis's settings."""

from __future__ import annotations

import gc
import os
import uuid
import warnings
from collections.abc import Iterator

import pytest
from crashed_once import CrashedOnce
from hypothesis import HealthCheck, settings
from kafka_process import RETENTION_CHECK_INTERVAL_MS, running_kafka
from missing import skipped_where_missing
from secured_kafka import SecuredKafka, secured_kafka

from loadwise.coordinator import Coordinator, ThreadedCoordinator
from loadwise.coordinator.settings import BrokerSettings

# No test asserts a time: examples that are slow on a busy machine are no failure.
settings.register_profile("loadwise", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loadwise")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> CrashedOnce | None:
    """pytest-xdist: how tests are dealt out to processes."""
    return CrashedOnce(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def coordinator() -> Iterator[ThreadedCoordinator]:
    """A running coordinator on a thread of its own, shared by all tests: ``coordinator.bootstrap_servers``."""
    settings = BrokerSettings(retention_check_interval_ms=RETENTION_CHECK_INTERVAL_MS)
    with Coordinator(settings=settings).in_thread() as running:
        yield running


@pytest.fixture(scope="session")
def apache_kafka() -> Iterator[str]:
    """The address of a real Apache Kafka, shared by the tests that are marked ``kafka``."""
    with skipped_where_missing(), running_kafka() as address:
        yield address


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """A real Apache Kafka that asks for TLS and a password, shared by tests that are marked ``kafka``."""
    if os.environ.get("LOADWISE_KAFKA", "jars") != "jars":
        pytest.skip("a Kafka with users and certificates of its own is started from jars only: LOADWISE_KAFKA=jars")
    with skipped_where_missing(), secured_kafka(tmp_path_factory.mktemp("certificates")) as running:
        yield running


@pytest.fixture(scope="session", params=["loadwise", pytest.param("apache", marks=pytest.mark.kafka)])
def broker(request: pytest.FixtureRequest) -> str:
    """The address of our coordinator, then that of a real Apache Kafka: for tests that hold on both."""
    if request.param == "loadwise":
        running: ThreadedCoordinator = request.getfixturevalue("coordinator")
        return running.bootstrap_servers
    address: str = request.getfixturevalue("apache_kafka")
    return address


@pytest.fixture
def collected() -> None:
    """Collect what earlier tests have left, for tests that collect garbage themselves.

    A constructor of kafka-python that raises leaves its sockets behind, and whoever collects them gets the warnings.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def topic_name() -> str:
    """The name of a topic that nobody made yet; ``coordinator.create_topic(topic_name, partitions)`` makes it."""
    return f"topic-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def group_id() -> str:
    """The name of a group that nobody is in yet."""
    return f"group-{uuid.uuid4().hex[:12]}"
