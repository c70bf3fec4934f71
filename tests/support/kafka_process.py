"""A real Apache Kafka for the tests: one KRaft node on loopback, from Maven Central's jars or in a container.

``LOADWISE_KAFKA`` says which: ``jars`` (needs a JDK and Maven), ``docker`` (needs testcontainers and an engine), or an
address ``host:port`` of a broker that is already running. Unset: the jars where there is a JDK and Maven.
"""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from made_once import made_once
from maven import JarsMissingError
from maven import jars as fetched_jars

VERSION = "4.3.1"
POM = Path(__file__).with_name("pom.xml")
START_TIMEOUT_S = 240
SHORT_LIVED = ("-XX:TieredStopAtLevel=1",)
"""Options of a JVM that lives for minutes: it compiles quickly and once. A broker of the tests takes 40 % less CPU."""
CLASSES = "kafka.jsa"
RETENTION_CHECK_INTERVAL_MS = 86_400_000
"""Many tests write records with times of long ago, which every five minutes would be deleted in the middle of one."""
SETTINGS = {
    "log.initial.task.delay.ms": "1000",  # the first look at what retention lets go is before the first test
    "log.retention.check.interval.ms": str(RETENTION_CHECK_INTERVAL_MS),
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.share.assignment.interval.ms": "0",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.min.session.timeout.ms": "1000",
}


class KafkaNotInstalledError(Exception):
    """What Apache Kafka needs is not on this machine; the message says what to install."""


@contextlib.contextmanager
def running_kafka(jvm: Sequence[str] | None = None) -> Iterator[str]:
    """Run Apache Kafka for the length of a with block; answers its bootstrap address.

    ``jvm`` are options of the JVM, where it is started here from jars, in place of `short_lived_jvm`'s. Raises
    `KafkaNotInstalledError` where a JDK, Maven or Docker is missing.
    """
    choice = os.environ.get("LOADWISE_KAFKA", "jars")
    if choice == "jars":
        with kafka_from_jars(jvm=jvm) as addresses:
            yield addresses["PLAINTEXT"]
    elif choice == "docker":
        with _in_docker() as address:
            yield address
    else:
        yield choice


@contextlib.contextmanager
def kafka_from_jars(
    protocols: Sequence[str] = ("PLAINTEXT",),
    more: Mapping[str, str] | None = None,
    *formatting: str,
    proxied: Mapping[str, str] | None = None,
    jvm: Sequence[str] | None = None,
    beside: Sequence[Path] = (),
) -> Iterator[KafkaAddresses]:
    """Run Apache Kafka from its jars for the length of a with block; answers its address under each protocol.

    A listener is named as its protocol, and PLAINTEXT must be one of them. ``proxied`` are further ones, of any name
    and without TLS, with the address of the proxy that clients are told in their place. ``more`` are settings,
    ``formatting`` arguments of the storage tool, ``jvm`` options of both JVMs in place of `short_lived_jvm`'s,
    ``beside`` jars of plug-ins. Raises `KafkaNotInstalledError`.
    """
    options = short_lived_jvm() if jvm is None else jvm
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="apache-kafka-"))
        controller = f"127.0.0.1:{stack.enter_context(reserved_port())}"
        told = dict(proxied or {})
        addresses = {name: f"127.0.0.1:{stack.enter_context(reserved_port())}" for name in (*protocols, *told)}
        listeners = [f"{name}://{address}" for name, address in addresses.items()]
        advertised = [f"{name}://{address}" for name, address in (addresses | told).items()]
        protocol_of = (
            {"CONTROLLER": "PLAINTEXT"} | {name: name for name in protocols} | dict.fromkeys(told, "PLAINTEXT")
        )
        settings = {
            **SETTINGS,
            "listeners": ",".join([*listeners, f"CONTROLLER://{controller}"]),
            "advertised.listeners": ",".join(advertised),
            "listener.security.protocol.map": ",".join(f"{name}:{each}" for name, each in protocol_of.items()),
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": f"{folder}/data",
            **(more or {}),
        }
        properties = Path(folder, "server.properties")
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        log = Path(folder, "kafka.log")
        format_storage(properties, new_cluster_id(), *formatting, jvm=options, beside=beside)
        command = [*java_program("kafka.Kafka", "-Xmx512m", *options, beside=beside), str(properties)]
        broker = BrokerProcess(command, log, addresses["PLAINTEXT"])
        try:
            broker.start()
            yield KafkaAddresses(addresses, broker)
        finally:
            broker.kill()  # nothing of it is kept, so there is nothing to shut down in order


def new_cluster_id() -> str:
    """An id as ``StorageTool random-uuid`` prints it (Kafka's ``Uuid.toString``)."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def java_program(program: str, *jvm: str, beside: Sequence[Path] = ()) -> list[str]:
    """The command that runs a class of Kafka's jars, or of those ``beside``; its arguments come next.

    ``jvm`` are options of the JVM.
    """
    return ["java", *jvm, "-cp", ":".join([f"{jars()}/*", *map(str, beside)]), program]


@cache
def short_lived_jvm() -> Sequence[str]:
    """`SHORT_LIVED`, and where Kafka's classes lie as a JVM has loaded them: a class path must begin with its jars.

    The first broker writes them (class data sharing), once for each JDK. Another one then starts in 2 s of CPU instead
    of 4, and each of Kafka's tools and clients takes a third less.
    """
    files = sorted((str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars().iterdir())
    version = subprocess.run(["java", "-version"], capture_output=True, check=True).stderr

    def write(folder: Path) -> None:
        with kafka_from_jars(jvm=[*SHORT_LIVED, f"-XX:ArchiveClassesAtExit={folder / CLASSES}"]) as kafka:
            kafka.broker.stop()

    classes = made_once("kafka-classes", version + repr(files).encode(), write) / CLASSES
    return [*SHORT_LIVED, f"-XX:SharedArchiveFile={classes}"]


def format_storage(
    properties: Path, cluster_id: str, *arguments: str, jvm: Sequence[str], beside: Sequence[Path] = ()
) -> None:
    """Make the folders of a node that is to start with these properties, which may name classes ``beside``."""
    tool = java_program("kafka.tools.StorageTool", "-Xmx128m", *jvm, beside=beside)
    command = [*tool, "format", f"--cluster-id={cluster_id}", "-c", str(properties), *arguments]
    subprocess.run(command, capture_output=True, check=True)


class KafkaAddresses(dict[str, str]):
    """The addresses of a Kafka, and the broker behind them for tests that kill and start it again."""

    def __init__(self, addresses: Mapping[str, str], broker: BrokerProcess) -> None:
        super().__init__(addresses)
        self.broker = broker


class BrokerProcess:
    """The process, which can be killed and started again with the same data under the same address."""

    def __init__(self, command: Sequence[str], log: Path, address: str) -> None:
        self._command, self._log, self.address = command, log, address
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        self.launch()
        wait_until_ready(self.address, self.ended)

    def launch(self) -> None:
        """Start, and do not wait."""
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=output)

    def ended(self) -> str | None:
        """Its log if it has ended by itself; None while it runs."""
        assert self._process is not None
        return None if self._process.poll() is None else self._log.read_text()

    @property
    def pid(self) -> int:
        """The process that runs."""
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        """Let it shut down in order, and wait for its end."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait()

    def kill(self) -> None:
        """``kill -9``."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def jars() -> Path:
    """The folder with Kafka's jars, fetched once for each content of the pom.

    Raises `KafkaNotInstalledError` where a JDK or Maven is missing, or Maven cannot fetch them.
    """
    try:
        return fetched_jars(POM, f"kafka-{VERSION}")
    except JarsMissingError as error:
        raise KafkaNotInstalledError(f"the tests against Apache Kafka need its jars: {error}") from error


@contextlib.contextmanager
def _in_docker() -> Iterator[str]:
    try:
        from docker.errors import DockerException
        from testcontainers.core.container import DockerContainer
    except ImportError as error:
        raise KafkaNotInstalledError("Kafka in Docker needs: pip install testcontainers") from error
    with reserved_port() as port:
        pass  # Docker has to bind it, and need not be on Linux
    try:
        container = DockerContainer(f"apache/kafka:{VERSION}")
    except DockerException as error:
        raise KafkaNotInstalledError(f"Kafka in Docker needs an engine that answers: {error}") from error
    # One number inside and outside, since clients are told the listener's; on loopback only, as docker-py says it.
    container.ports[f"{port}/tcp"] = ("127.0.0.1", port)
    listeners = {
        "listeners": f"PLAINTEXT://0.0.0.0:{port},CONTROLLER://127.0.0.1:9093",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "controller.quorum.voters": "1@127.0.0.1:9093",
    }
    # The image's KafkaDockerWrapper makes server.properties of these, and of nothing else once there are any.
    for key, value in (SETTINGS | listeners).items():
        container.with_env("KAFKA_" + key.upper().replace(".", "_"), value)

    def ended() -> str | None:
        container.reload()
        return None if container.status != "exited" else "\n".join(part.decode() for part in container.get_logs())

    with container:
        wait_until_ready(f"127.0.0.1:{port}", ended)
        yield f"127.0.0.1:{port}"


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """A port that nobody else is given before the broker listens on it, which takes it seconds to do.

    On Linux it stays bound meanwhile, though nobody listens on it: a listener with SO_REUSEADDR, as Java's have, may
    bind it as well, and the system hands it to nobody who asks for just any port. Elsewhere it is free in between.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        if sys.platform != "linux":
            held.close()
        yield port


def wait_until_ready(address: str, ended: Callable[[], str | None], brokers: int = 1) -> None:
    """Wait until the broker answers a metadata request with itself in it, and coordinates groups.

    ``ended`` answers its log once it has ended, None before. With several ``brokers`` it tells of all of them before
    somebody asks for a coordinator: one that is not there yet when the topic of offsets is made would lead none of it.
    """
    from confluent_kafka import Consumer, KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        if (log := ended()) is not None:
            raise RuntimeError(f"Apache Kafka ended before it answered:\n{log[-4000:]}")
        try:
            if len(admin.list_topics(timeout=1).brokers) >= brokers:
                break
            time.sleep(0.1)  # between two questions
        except KafkaException:
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"Apache Kafka did not answer on {address} within {START_TIMEOUT_S} s")
    # The first question after offsets of a group makes the topic that holds them; until all of its partitions are
    # loaded, their groups are answered NOT_COORDINATOR. Enough groups to meet them all:
    for number in range(4 * int(SETTINGS["offsets.topic.num.partitions"])):
        consumer = Consumer({"bootstrap.servers": address, "group.id": f"ready-{number}", "log_level": 0})
        with contextlib.closing(consumer):
            while True:
                try:
                    consumer.committed([TopicPartition("none", 0)], timeout=START_TIMEOUT_S)
                    break
                except KafkaException:  # the client gives up on NOT_COORDINATOR before the broker has loaded them
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.1)  # between two questions
