"""The brokers that are measured, each a process of its own.

They are our coordinator on either event loop, Apache Kafka, and kfake, the fake of Kafka that franz-go's own tests use.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from kafka_process import KafkaNotInstalledError, kafka_from_jars

from benchmarks.coordinator.driver import PARTITIONS, TOPIC
from benchmarks.processes import cpu_s
from loadwise.coordinator.security.certificates import Certificates

WITHOUT_UVLOOP = "import sys; sys.modules['uvloop'] = None; from loadwise.cli import main; main()"
"""An import of a module that is None fails as if it were not installed."""


@dataclass(frozen=True)
class Served:
    """A coordinator that runs."""

    name: str
    bootstrap: str
    pid: int
    ready_s: float | None = None
    """How long ours took from its start until it listened."""
    tls: ssl.SSLContext | None = None
    """What clients need for TLS; None for plain text."""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, _, port = self.bootstrap.partition(",")[0].rpartition(":")
        return host, int(port)

    def cpu_s(self) -> float:
        """Processor time that it has taken so far."""
        return cpu_s(self.pid)


@contextmanager
def ours(
    *,
    uvloop: bool,
    name: str = "",
    code: str = WITHOUT_UVLOOP,
    options: Sequence[str] = (),
    tls: ssl.SSLContext | None = None,
) -> Iterator[Served]:
    """Our coordinator as a program, on one event loop or the other; ``code`` starts it on asyncio's."""
    command = [sys.executable, "-m", "loadwise"] if uvloop else [sys.executable, "-c", code]
    arguments = [*command, "coordinator", "--topic", f"{TOPIC}:{PARTITIONS}", *options]
    began_s = time.perf_counter()
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            name = name or ("loadwise, uvloop" if uvloop else "loadwise, asyncio")
            bootstrap = process.stdout.readline().split()[-1]
            yield Served(name, bootstrap, process.pid, time.perf_counter() - began_s, tls)
        finally:
            process.terminate()


@contextmanager
def ours_on_disk() -> Iterator[Served]:
    """Our coordinator on uvloop with a data directory."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ours(uvloop=True, name="loadwise, --data-dir", options=[f"--data-dir={folder}"]) as served,
    ):
        yield served


@contextmanager
def ours_with_tls() -> Iterator[Served]:
    """Our coordinator on uvloop with TLS."""
    with tempfile.TemporaryDirectory() as folder:
        certificates = Certificates(Path(folder))
        settings = {
            "security.protocol": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": certificates.broker,
        }
        options = [f"--config={key}={value}" for key, value in settings.items()]
        context = ssl.create_default_context(cafile=str(certificates.authority))
        with ours(uvloop=True, name="loadwise, TLS", options=options, tls=context) as served:
            yield served


@contextmanager
def apache_kafka() -> Iterator[Served | None]:
    """Apache Kafka as a program; None, and a line that tells why, where there is no JDK or Maven."""
    try:
        with kafka_from_jars(jvm=()) as addresses:
            admin = AdminClient({"bootstrap.servers": addresses["PLAINTEXT"], "log_level": 0})  # it outlives the broker
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(60)
            yield Served("Apache Kafka", addresses["PLAINTEXT"], addresses.broker.pid)
    except KafkaNotInstalledError as error:
        print(f"Apache Kafka is left out: {error}")
        yield None


@contextmanager
def kfake() -> Iterator[Served | None]:
    """franz-go's kfake as a program; None, and a line that tells why, where there is no Go, or too old a one."""
    if shutil.which("go") is None:
        print("kfake is left out: it needs Go")
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "kfake"
        source = Path(__file__).with_name("kfake")
        command = ["go", "build", "-o", str(program), "."]
        built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
        if built.returncode:
            print(f"kfake is left out: {built.stderr.strip()}")
            yield None
            return
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            yield Served("kfake", process.stdout.readline().strip(), process.pid)
            process.terminate()
