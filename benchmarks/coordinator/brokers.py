"""The brokers that are measured, each a process of its own.

They are our coordinator on either event loop, Apache Kafka, and kfake, the fake of Kafka that franz-go's own tests use.
"""

from __future__ import annotations

import os
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

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "support"))  # no package: pytest has it as a path

from confluent_kafka.admin import AdminClient, NewTopic
from kafka_process import KafkaNotInstalledError, kafka_from_jars

from benchmarks.coordinator.driver import PARTITIONS, TOPIC
from loadwise.coordinator.security.certificates import Certificates

WITHOUT_UVLOOP = "import sys; sys.modules['uvloop'] = None; from loadwise.cli import main; main()"
"""An import of a module that is None fails as if it were not installed."""


@dataclass(frozen=True)
class Served:
    """A coordinator that runs."""

    name: str
    bootstrap: str
    pid: int
    ready_s: float | None
    """How long it took to listen."""
    tls: ssl.SSLContext | None = None
    """What its clients need for TLS; None where it takes plain text."""

    def cpu_s(self) -> float:
        """Processor time that it has taken so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        """Memory that it holds."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


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
    name = name or ("loadwise, uvloop" if uvloop else "loadwise, asyncio")
    command = [sys.executable, "-m", "loadwise"] if uvloop else [sys.executable, "-c", code]
    # With compiled modules, as whoever has started it before has them.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(
        [sys.executable, "-c", "import loadwise.cli.coordinator, loadwise.coordinator"], env=environment, check=True
    )
    start = time.perf_counter()
    arguments = [*command, "coordinator", "--topic", f"{TOPIC}:{PARTITIONS}", *options]
    with subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            bootstrap = process.stdout.readline().split()[-1]
            ready_s = time.perf_counter() - start
            yield Served(name, bootstrap, process.pid, ready_s, tls)
        finally:
            process.terminate()


@contextmanager
def ours_safe(*, tls: bool = True, disk: bool = True) -> Iterator[Served]:
    """Our coordinator on uvloop, with TLS, with a directory that keeps everything over restarts, or with both."""
    name = "+".join(["TLS"] * tls + ["disk"] * disk)
    with tempfile.TemporaryDirectory() as folder:
        options = [f"--data-dir={folder}/data"] if disk else []
        context = None
        if tls:
            certificates = Certificates(Path(folder))
            options += ["--config=security.protocol=SSL", "--config=ssl.keystore.type=PEM"]
            options += [f"--config=ssl.keystore.location={certificates.broker}"]
            context = ssl.create_default_context(cafile=str(certificates.authority))
        with ours(uvloop=True, name=f"loadwise, {name}", options=options, tls=context) as served:
            yield served


@contextmanager
def apache_kafka() -> Iterator[Served | None]:
    """Apache Kafka as a program; None, and a line that tells why, where there is no JDK or Maven."""
    try:
        with kafka_from_jars(jvm=()) as addresses:
            admin = AdminClient({"bootstrap.servers": addresses["PLAINTEXT"], "log_level": 0})  # it outlives the broker
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(60)
            yield Served("Apache Kafka", addresses["PLAINTEXT"], addresses.broker.pid, None)
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
        start = time.perf_counter()
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            bootstrap = process.stdout.readline().strip()
            yield Served("kfake", bootstrap, process.pid, time.perf_counter() - start)
            process.terminate()
