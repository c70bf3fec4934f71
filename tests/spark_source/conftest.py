"""What the Spark tests share: one Spark session, topics with records in them, a real Kafka where one is asked for."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from missing import skipped_where_missing
from session_of_its_own import session_of_its_own
from spark_connector import VERSION, JarsMissingError, shortfall, spark_jars
from spark_program import SHORT_LIVED, SOCKET_TIMEOUT_S
from topics import WAIT_S, delete_topic, grow_topic, make_topic

import loadwise
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.spark_source.session import python_for_spark

NO_JDK = "needs a JDK 17 or later: apt-get install openjdk-17-jre-headless"


@pytest.fixture(scope="session")
def connector() -> str:
    """The version of Spark's own Kafka source, ``format("kafka")``, that the session has for those who ask for it."""
    with skipped_where_missing():
        print(shortfall() or f"the connector {VERSION}")
    return VERSION


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local Spark with two task slots, shared by all tests; its JVM is gone when they are done."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip(NO_JDK)
    pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")
    # A session cannot be given more jars later, so it has them from the start where a test will ask for them.
    jars, connect = "", {}
    asked_for = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    if "connect_address" in asked_for:
        connect = {
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
        }
    if "connector" in asked_for:
        with suppress(JarsMissingError):  # those tests are told by the fixture that they ask for
            jars = spark_jars()
    # Spark's Python processes inherit the JVM's environment: they find loadwise, own_assignor.py and the benchmark's
    # source by this path.
    packages = [str(Path(loadwise.__file__).parents[1]), str(Path(__file__).parent), str(Path(__file__).parents[2])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([*packages, os.environ.get("PYTHONPATH", "")]))
        for name, value in python_for_spark(sys.executable, os.environ["PATH"]).items():
            patch.setenv(name, value)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("SPARK_AUTH_SOCKET_TIMEOUT", SOCKET_TIMEOUT_S)
        settings = SHORT_LIVED | {
            **connect,
            "spark.jars": jars,
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.pyspark.worker.logging.enabled": "true",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        }
        with session_of_its_own("loadwise tests", master="local[2]", settings=settings) as session:
            session.sparkContext.setLogLevel("OFF")  # the errors that tests provoke are asserted, not printed
            yield session


@pytest.fixture
def connect_address(spark: Any) -> str:
    """Where programs without a JVM reach `spark`, which serves them only where a test asks for this."""
    service = getattr(spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    return f"sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}"


@dataclass
class Topic:
    """A topic, and what was written to it."""

    bootstrap_servers: str
    name: str
    written: list[tuple[bytes | None, bytes | None, int]] = field(default_factory=list)
    """Key, value and partition of each record, by partition in the order of offsets."""

    def options(self, **more: object) -> dict[str, str]:
        """The options that read it; ``__`` in a name stands for a dot."""
        mine = {"kafka.bootstrap.servers": self.bootstrap_servers, "subscribe": self.name}
        return mine | {name.replace("__", "."): str(value) for name, value in more.items()}

    def write(self, sizes: Sequence[int], *, codec: str = "none", **more: Any) -> None:
        """Write ``sizes[i]`` records to partition i, with a real producer, in this order."""
        settings = {"bootstrap.servers": self.bootstrap_servers, "enable.idempotence": True}
        producer = Producer(settings | {"linger.ms": 5, "compression.type": codec})
        for partition, size in enumerate(sizes):
            for number in range(size):
                key = f"{partition}/{number}".encode()
                value = b"v" * (number % 50)
                producer.produce(self.name, value, key, partition, **more)
                self.written.append((key, value, partition))
        assert producer.flush(WAIT_S) == 0

    def grow(self, partitions: int) -> None:
        """Let the topic have so many partitions, new ones included."""
        grow_topic(self.bootstrap_servers, self.name, partitions)

    def delete(self) -> None:
        """Delete the topic and all that was written to it."""
        delete_topic(self.bootstrap_servers, self.name)
        self.written.clear()

    def create(self, partitions: int) -> None:
        """Make the topic anew."""
        make_topic(self.bootstrap_servers, self.name, partitions)


@pytest.fixture
def topic_on(topic_name: str) -> Callable[[str], Callable[..., Topic]]:
    """Makes what `topic` is, for the broker at an address."""

    def of_broker(bootstrap_servers: str) -> Callable[..., Topic]:
        def make(sizes: Sequence[int], **more: Any) -> Topic:
            # Some records are of 2023: with the usual retention of a week, a slow run sees the broker delete them.
            make_topic(bootstrap_servers, topic_name, len(sizes), {"retention.ms": "-1"})
            made = Topic(bootstrap_servers, topic_name)
            made.write(sizes, **more)
            return made

        return make

    return of_broker


@pytest.fixture
def topic(coordinator, topic_on: Callable[[str], Callable[..., Topic]]) -> Callable[..., Topic]:
    """Makes a topic with so many records in each partition: ``topic([100, 0, 20])``."""
    return topic_on(coordinator.bootstrap_servers)


@pytest.fixture
def corrupt_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each read of our coordinator's logs have a batch whose checksum does not fit."""
    whole = PartitionLog.read

    def corrupt(self: PartitionLog, offset: int, max_bytes: int, **more: Any) -> bytes:
        found = bytearray(whole(self, offset, max_bytes, **more))
        if found:
            found[70] ^= 0xFF  # in a record
        return bytes(found)

    monkeypatch.setattr(PartitionLog, "read", corrupt)


@pytest.fixture
def group(broker: str, topic_name: str, group_id: str) -> Iterator[Any]:
    """Streams and consumers of one topic in one group, on our coordinator and on Apache Kafka."""
    from member_group import PARTITIONS, Group

    make_topic(broker, topic_name, PARTITIONS)
    everybody = Group(broker, topic_name, group_id)
    yield everybody
    for each in everybody.ended:
        each.end()
