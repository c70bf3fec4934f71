"""What the tests ask of Docker for a real Kafka, without one: testcontainers' own code, its client a fake.

The fake runs our coordinator where the container would listen, so that all but the engine and the image is real.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import docker.errors
import pytest
from kafka_process import VERSION, KafkaNotInstalledError, running_kafka
from testcontainers.core import container as testcontainers

from loadwise.coordinator import Coordinator


class Container:
    """A container of docker-py, as far as it is used."""

    def __init__(self, ports: dict[str, Any], *, ends: bool) -> None:
        self.id = self.short_id = "fake"
        self.status = "created"
        self.removed = False
        [(inside, (self.host, self.port))] = ports.items()
        assert inside == f"{self.port}/tcp"
        self._ends = ends

    def start(self) -> None:
        self.status = "exited" if self._ends else "running"
        if not self._ends:
            self._running = Coordinator(host=self.host, port=self.port).in_thread()
            self._running.start()

    def reload(self) -> None:
        pass

    def logs(self, **only: bool) -> bytes:
        return b"said" if only == {"stderr": False} else b"complained"

    def remove(self, *, force: bool, v: bool) -> None:
        self.removed = force and v
        if self.status == "running":
            self._running.stop()


class Engine:
    """testcontainers' client of an engine."""

    def __init__(self, *, ends: bool = False) -> None:
        self.made: list[tuple[str, dict[str, Any]]] = []
        self.containers: list[Container] = []
        self.client = SimpleNamespace(close=lambda: None)
        self._ends = ends

    def create(self, image: str, *, ports: dict[str, Any], **settings: Any) -> Container:
        self.made.append((image, settings))
        self.containers.append(Container(ports, ends=self._ends))
        return self.containers[-1]

    def start(self, container: Container) -> None:
        container.start()


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``play(engine)``: this is what testcontainers talks to."""
    monkeypatch.setenv("LOADWISE_KAFKA", "docker")
    monkeypatch.setattr(testcontainers.c, "ryuk_disabled", True)

    def given(engine: Engine) -> Engine:
        monkeypatch.setattr(testcontainers, "DockerClient", lambda: engine)
        return engine

    return given


def as_the_image_reads_it(environment: dict[str, str]) -> dict[str, str]:
    """``KafkaDockerWrapper.getServerConfigsFromEnv``."""
    names = {name: name.removeprefix("KAFKA_").lower().replace("_", ".") for name in environment}
    return {
        name.replace("...", "-").replace("..", "_"): environment[variable]
        for variable, name in names.items()
        if variable.startswith("KAFKA_")
    }


def test_a_broker_in_a_container(play: Any) -> None:
    engine = play(Engine())
    with running_kafka() as address:
        [container] = engine.containers
        assert address == f"127.0.0.1:{container.port}"
        assert container.host == "127.0.0.1", "nobody else reaches it"
    assert container.removed
    [(image, settings)] = engine.made
    assert image == f"apache/kafka:{VERSION}"
    properties = as_the_image_reads_it(settings["environment"])
    assert properties["process.roles"] == "broker,controller"
    assert properties["advertised.listeners"] == f"PLAINTEXT://127.0.0.1:{container.port}"
    assert properties["listeners"].split(",")[0] == f"PLAINTEXT://0.0.0.0:{container.port}"
    assert properties["offsets.topic.replication.factor"] == "1"
    assert properties["group.initial.rebalance.delay.ms"] == "0"


def test_a_container_that_ends_says_why_and_is_removed(play: Any) -> None:
    engine = play(Engine(ends=True))
    with pytest.raises(RuntimeError, match="ended before it answered:\nsaid\ncomplained"), running_kafka():
        pass
    assert engine.containers[0].removed


def test_without_an_engine_it_says_what_is_missing(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    play(Engine())

    def nobody() -> Engine:
        raise docker.errors.DockerException("connection refused")

    monkeypatch.setattr(testcontainers, "DockerClient", nobody)
    with pytest.raises(KafkaNotInstalledError, match="an engine that answers: connection refused"), running_kafka():
        pass
