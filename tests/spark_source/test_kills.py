"""``kill -9`` of the driver and of its Python workers under live traffic: nothing is lost and nothing doubled.

``LOADWISE_KILLS=20 make test-kafka TESTS=tests/spark_source/test_kills.py`` kills 20 of each; one by default, for
each start of Spark takes its time. The first two drivers surely die inside a micro-batch: the first of all, whose start
("latest") is somewhere else when it is replayed, and one with records. The others die at random moments.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from confluent_kafka import Producer
from topics import WAIT_S, fill, make_topic

import loadwise

KILLS = int(os.environ.get("LOADWISE_KILLS", "1"))
PROGRAM = Path(__file__).with_name("counted_stream.py")
PARTITIONS = 3
STALLED = (0, 1)
"""Micro-batches that a driver is killed in: the first is empty, the second is not."""
BEFORE = 5
"""Records in each partition before anybody reads: what "latest" leaves out."""
STEP_S = 300.0
"""How long a step may take: each starts Spark, which takes minutes where the machine has much else to do."""

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.timeout(900 + 120 * KILLS),
    pytest.mark.skipif(sys.platform != "linux", reason="finds Spark's processes in /proc"),
]


@contextmanager
def traffic(brokers, topic):
    """Writes until the end, most of it to partition 0; gives how many records were written to each partition."""
    over, written = Event(), Counter(dict.fromkeys(range(PARTITIONS), BEFORE))

    def write():
        producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5, "enable.idempotence": True})
        while not over.wait(0.02):
            for partition in (0, 0, 0, 0, 0, 1, 2):
                producer.produce(topic, b"v" * 100, partition=partition)
                written[partition] += 1
            producer.poll(0)
        assert producer.flush(WAIT_S) == 0

    thread = Thread(target=write)
    thread.start()
    try:
        yield written
    finally:
        over.set()
        thread.join()


class Query:
    """The program, with all its processes in a session of their own: Python, JVM, PySpark's daemons, their workers."""

    def __init__(self, brokers, topic, folder, *more):
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        environment["PYTHONPATH"] = os.pathsep.join([str(Path(loadwise.__file__).parents[1]), *sys.path])
        self.log = folder / "log"
        command = [sys.executable, str(PROGRAM), brokers, topic, str(folder), *more]
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


class Kept:
    """What the program has left behind: its sink, and Spark's checkpoint."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("unfinished", "sink"):
            (folder / name).mkdir()

    def batches(self):
        return len(list((self.folder / "sink").iterdir()))

    def end(self, batch):
        """Where a micro-batch was planned to end."""
        lines = (self.folder / "checkpoint" / "offsets" / str(batch)).read_text().splitlines()
        # The one topic: what marks the first micro-batch as this source's has no partitions.
        (positions,) = filter(None, json.loads(lines[2]).values())
        return {int(partition): offset for partition, offset in positions.items()}

    def done(self):
        """Where the newest finished micro-batch ended."""
        return self.end(max(int(file.name) for file in (self.folder / "checkpoint" / "commits").glob("[0-9]*")))

    def read(self, place):
        return [tuple(row) for row in json.loads((self.folder / place).read_text())]

    def came(self):
        return Counter(row for file in (self.folder / "sink").iterdir() for row in self.read(file))


def kill_a_worker(query, kept, chance):
    """Kill one worker or another while micro-batches come and go, and wait until one more is finished."""
    before = kept.batches()
    query.wait_for(lambda: kept.batches() > before and query.workers())
    time.sleep(chance.random() * 0.3)  # nothing waits for this: it varies what the worker is doing
    if workers := query.workers():
        with suppress(ProcessLookupError):
            os.kill(chance.choice(workers), signal.SIGKILL)
    after = kept.batches()
    query.wait_for(lambda: kept.batches() > after + 1)


def test_kills_lose_nothing_and_double_nothing(apache_kafka, topic_name, tmp_path):
    seed = int(os.environ.get("LOADWISE_SEED", random.randrange(1 << 30)))
    print(f"LOADWISE_SEED={seed}")
    chance, kept, killed = random.Random(seed), Kept(tmp_path), {}
    make_topic(apache_kafka, topic_name, PARTITIONS)
    fill(apache_kafka, topic_name, [BEFORE] * PARTITIONS)
    with ExitStack() as running:
        written = running.enter_context(traffic(apache_kafka, topic_name))
        for kill in range(KILLS):
            if kill in STALLED:
                with Query(apache_kafka, topic_name, tmp_path, str(kill)) as query:
                    query.wait_for((tmp_path / "unfinished" / str(kill)).exists)
                killed[kill] = kept.read(f"unfinished/{kill}")
                if kill == 0:
                    first = kept.end(0)  # now, for Spark keeps what it has written of 100 micro-batches
            else:
                with Query(apache_kafka, topic_name, tmp_path) as query:
                    kill_a_worker(query, kept, chance)
                    time.sleep(chance.random() * 0.3)  # likewise, the driver
        with Query(apache_kafka, topic_name, tmp_path) as query:
            for _ in STALLED[:KILLS]:
                kill_a_worker(query, kept, chance)
            running.close()
            query.wait_for(lambda: kept.done() == written)
    assert killed[0] == []
    assert {number: sorted(kept.read(f"sink/{number}")) for number in killed} == {
        number: sorted(rows) for number, rows in killed.items()
    }
    came = kept.came()
    assert min(first.values()) >= BEFORE
    assert {place for place, times in came.items() if times > 1} == set()
    assert set(came) == {(place, offset) for place, end in written.items() for offset in range(first[place], end)}
