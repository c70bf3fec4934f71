"""A program that runs Spark, to be killed: with all its processes in a session of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import loadwise
from loadwise.spark_source.session import local_session, python_for_spark

SOCKET_TIMEOUT_S = "300"
"""How long Spark's Python processes wait for the JVM. On a busy machine it takes longer than Spark's 15 seconds."""
SHORT_LIVED = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "1",
    "spark.python.authenticate.socketTimeout": f"{SOCKET_TIMEOUT_S}s",
}
"""Settings of a Spark that does most of what it does once: compiling that costs more than it gives."""
STEP_S = 300.0
"""How long a step may take: each starts Spark, which takes minutes where the machine has much else to do."""


def short_lived_session():
    """The Spark of such a program. A task may fail as often as eight times: it may be killed so often."""
    return local_session("loadwise tests", master="local[2,8]", settings=SHORT_LIVED)


class SparkProgram:
    """The program, with all its processes in a session of their own: Python, JVM, PySpark's daemons, their workers."""

    def __init__(self, program, folder, *arguments):
        environment = (
            os.environ | python_for_spark(sys.executable, os.environ["PATH"]) | {"SPARK_LOCAL_IP": "127.0.0.1"}
        )
        environment["SPARK_AUTH_SOCKET_TIMEOUT"] = SOCKET_TIMEOUT_S  # for the process that plans a stream
        environment["PYTHONPATH"] = os.pathsep.join([str(Path(loadwise.__file__).parents[1]), *sys.path])
        self.log = folder / "log"
        command = [sys.executable, str(program), *map(str, arguments)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Kill the driver, and what would outlive it by a moment."""
        while left := self.processes():
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)  # between two looks
        self.process.wait()

    def processes(self):
        """All live processes of its session: the id of each to its parent's and its command line."""
        found = {}
        for file in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, parent, _, session = file.read_text().rpartition(")")[2].split()[:4]
                command = (file.parent / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(session) == self.process.pid and state not in "ZX":
                found[int(file.parent.name)] = (int(parent), command)
        return found

    def workers(self):
        """The Python workers of its tasks: those that PySpark's daemon has forked. Its planners have other daemons."""
        found = self.processes()
        parents = {
            pid: parent for pid, (parent, command) in found.items() if b"pyspark.daemon\0pyspark.worker" in command
        }
        return [pid for pid, parent in parents.items() if parent in parents]

    def wait_for(self, condition):
        deadline = time.monotonic() + STEP_S
        while not condition():
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.02)  # between two looks
