"""Fixtures for pytest: a Kafka coordinator in the test process, and topics of one's own. See ``docs/testing.md``.

pytest loads this in every environment with loadwise, so nothing else is imported before a fixture is used.
Under pytest-xdist every worker has coordinators of its own, each on a free port.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from loadwise.coordinator import Certificates, Snapshot, ThreadedCoordinator

_LONGEST_PREFIX = 200


class MakeTopic(Protocol):
    """What `kafka_topic` and `kafka_topic_session` give to a test."""

    def __call__(self, partitions: int = 1) -> str:
        """Make a topic, and answer with its name."""


class Fill(Protocol):
    """What `kafka_fill` gives."""

    def __call__(self, coordinator: ThreadedCoordinator, /) -> None:
        """Make topics, records, groups and whatever tests are to begin with."""


class _AsTheyAre:
    """Finds loadwise's modules before pytest does, which rewrites the asserts of every package that has a plugin.

    For that pytest parses each module, and the coordinator imports some in its own thread. Before Python 3.11.8, two
    threads that parse at the same time raise SystemError (AST constructor recursion depth mismatch).
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, _: ModuleType | None = None) -> ModuleSpec | None:
        """Find a module of loadwise as Python would without pytest."""
        return PathFinder.find_spec(name, path) if name.startswith("loadwise.") else None


def pytest_configure(config: pytest.Config) -> None:
    """pytest: leave loadwise's own modules as they are."""
    sys.meta_path.insert(0, _AsTheyAre)
    config.add_cleanup(lambda: sys.meta_path.remove(_AsTheyAre))


@pytest.fixture(scope="session")
def kafka_coordinator_options() -> dict[str, Any]:
    """Keyword arguments of `loadwise.coordinator.Coordinator`; override it in a ``conftest.py`` to change them."""
    return {}


@pytest.fixture(scope="session")
def kafka_certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A certificate authority, a broker certificate for this machine's names, and client certificates on demand."""
    from loadwise.coordinator import Certificates  # noqa: PLC0415  (only whoever uses it waits for it)

    return Certificates(tmp_path_factory.mktemp("kafka-certificates"))


@pytest.fixture
def kafka_coordinator(kafka_coordinator_options: dict[str, Any]) -> Iterator[ThreadedCoordinator]:
    """A running coordinator for this test alone; clients connect to ``kafka_coordinator.bootstrap_servers``."""
    yield from _running(kafka_coordinator_options)


@pytest.fixture(scope="session")
def kafka_coordinator_session(kafka_coordinator_options: dict[str, Any]) -> Iterator[ThreadedCoordinator]:
    """A running coordinator that all tests in the session share, one for each pytest-xdist worker."""
    yield from _running(kafka_coordinator_options)


@pytest.fixture(scope="session")
def kafka_fill() -> Fill:
    """A function that fills the cluster of `kafka_filled_coordinator`; override it in a ``conftest.py``."""
    return lambda coordinator: None  # noqa: ARG005


@pytest.fixture(scope="session")
def _kafka_filled(
    kafka_coordinator_options: dict[str, Any], kafka_fill: Fill
) -> Iterator[tuple[ThreadedCoordinator, Snapshot]]:
    for coordinator in _running(kafka_coordinator_options):
        kafka_fill(coordinator)
        yield coordinator, coordinator.snapshot()


@pytest.fixture
def kafka_filled_coordinator(_kafka_filled: tuple[ThreadedCoordinator, Snapshot]) -> ThreadedCoordinator:
    """A running coordinator in the state that `kafka_fill` created, without faults, for each test."""
    coordinator, snapshot = _kafka_filled
    coordinator.faults.clear()
    coordinator.restore(snapshot)
    coordinator.clock.resume()
    return coordinator


@pytest.fixture
def kafka_topic(kafka_coordinator: ThreadedCoordinator, request: pytest.FixtureRequest) -> MakeTopic:
    """A function that creates a topic on `kafka_coordinator` and returns its name."""
    return _maker(kafka_coordinator, request)


@pytest.fixture
def kafka_topic_session(kafka_coordinator_session: ThreadedCoordinator, request: pytest.FixtureRequest) -> MakeTopic:
    """A function that creates a topic on `kafka_coordinator_session`, with a name that no other test uses."""
    return _maker(kafka_coordinator_session, request)


def _running(options: dict[str, Any]) -> Iterator[ThreadedCoordinator]:
    from loadwise.coordinator import Coordinator  # noqa: PLC0415  (only whoever uses it waits for it)

    with Coordinator(**options).in_thread() as coordinator:
        yield coordinator


def _maker(coordinator: ThreadedCoordinator, request: pytest.FixtureRequest) -> MakeTopic:
    prefix = re.sub(r"[^a-zA-Z0-9-]+", "-", request.node.nodeid)[-_LONGEST_PREFIX:].strip("-")

    def make(partitions: int = 1) -> str:
        name = f"{prefix}-{uuid4().hex[:8]}"  # a test may run again, and two may differ in signs that no topic can have
        coordinator.create_topic(name, partitions)
        return name

    return make
