"""What all tests share: one coordinator and one Kafka for the session, names of their own, the order of tests."""

from __future__ import annotations

import gc
import os
import socket
import time
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from random import Random

import pytest
from crashed_once import CrashedOnce
from figures import Figure, Row, lines, rows, table
from kafka_process import RETENTION_CHECK_INTERVAL_MS, running_kafka
from missing import skipped_where_missing
from secured_kafka import SecuredKafka, secured_kafka
from seeds import register_profiles

from loadwise.coordinator import Coordinator, ThreadedCoordinator
from loadwise.coordinator.settings import BrokerSettings

register_profiles()
LONGEST_OF_A_SLICE_S = 600
"""A test that may take longer is left to the whole long tier."""
STARTED_S = time.monotonic()
FIGURES = "figures"
"""The property of a test's report that has what it measured."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """pytest: options of these tests alone."""
    group = parser.getgroup("loadwise's own tests")
    group.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in an order that this seed decides")
    group.addoption("--figures", metavar="FILE", help="write what live scenes have measured to this file")
    group.addoption("--minutes", type=float, help="skip the tests that would begin later than so many minutes")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """pytest: collect without garbage collections, and spare later ones what is there from now on.

    Thousands of tests and their modules stay until the end. To walk them again and again took a quarter of the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """pytest: the order in which tests run, the same in each process.

    Those that start Spark take longest: one of them alone at the end would keep the other processes waiting.
    """
    if (seed := config.getoption("shuffle")) is not None:
        Random(seed).shuffle(items)
    else:
        items.sort(key=lambda item: item.get_closest_marker("spark") is None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """pytest: of the long tier a slice, where only so many minutes are to be spent."""
    minutes = item.config.getoption("minutes")
    if minutes is None:
        return
    limit = item.get_closest_marker("timeout")
    if limit is not None and limit.args[0] > LONGEST_OF_A_SLICE_S:
        pytest.skip("soaks take longer than a slice")
    if time.monotonic() - STARTED_S > minutes * 60:
        pytest.skip(f"the {minutes:g} minutes of this slice are over")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """pytest: show in one line how many tests were skipped, and why; then what live scenes have measured."""
    skipped = [report.longrepr for report in terminalreporter.stats.get("skipped", ())]
    reasons = Counter(reason.removeprefix("Skipped: ") for _, _, reason in skipped)
    if reasons:
        terminalreporter.write_line("skipped: " + "; ".join(f"{count} ({reason})" for reason, count in reasons.items()))
    reports = [report for stat in ("passed", "failed") for report in terminalreporter.stats.get(stat, ())]
    properties = [each for report in reports if report.when == "call" for each in report.user_properties]
    measured = "".join(value for name, value in properties if name == FIGURES)
    if measured:
        terminalreporter.write_line(table(rows(measured)))
    if file := terminalreporter.config.getoption("figures"):
        Path(file).write_text(measured, encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> CrashedOnce | None:
    """pytest-xdist: how tests are dealt out to processes."""
    return CrashedOnce(config, log) if config.getoption("dist") == "loadgroup" else None


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
def record(request: pytest.FixtureRequest) -> Callable[[Iterable[Figure]], None]:
    """``record(figures)``: what a live scene has measured, for the table at the end of the run."""
    scene = request.node.name.removeprefix("test_")

    def keep(figures: Iterable[Figure]) -> None:
        request.node.user_properties.append((FIGURES, lines(Row(scene, figure) for figure in figures)))

    return keep


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address that refuses connections. Its port stays bound, so that no other process listens there meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture
def topic_name() -> str:
    """The name of a topic that nobody made yet; ``coordinator.create_topic(topic_name, partitions)`` makes it."""
    return f"topic-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def group_id() -> str:
    """The name of a group that nobody is in yet."""
    return f"group-{uuid.uuid4().hex[:12]}"
