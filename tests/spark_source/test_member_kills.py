"""``kill -9`` on both sides of a group of a stream and two consumers, at random: nothing is lost, repeats are bounded.

``LOADWISE_MEMBER_KILLS_S=300 make test-kafka TESTS=tests/spark_source/test_member_kills.py`` kills for five minutes; a
few times by default, for each start of Spark takes its time. Killed are a consumer, the process of the stream that is
the member, and the driver with all that it has started: whatever has read since it was started, and so consumers also
while the stream starts again.
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
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from spark_program import SparkProgram
from topics import make_topic
from traffic import traffic

FIRST = ("consumer", "member", "driver")
"""What is killed first; then whatever has read."""
KILLS = 2
"""So many times at least."""
SECONDS = int(os.environ.get("LOADWISE_MEMBER_KILLS_S", "0"))
"""So long at least."""
STREAM = Path(__file__).with_name("member_stream.py")
CONSUMER = Path(__file__).with_name("member_consumer.py")
PARTITIONS = 6
SPREAD = (0, 0, 0, *range(PARTITIONS))
"""Where records are written to: most of them to partition 0."""
IN_FLIGHT = 1000 + PARTITIONS
"""The most that a micro-batch reads, and more than a consumer reads before it commits."""

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.timeout(1800 + 2 * SECONDS),
    pytest.mark.skipif(sys.platform != "linux", reason="finds Spark's processes in /proc"),
]


class Consumer:
    """The consumer's program, started again wherever it is killed."""

    def __init__(self, folder, number, *arguments):
        self.file, self.log = folder / f"consumer-{number}", folder / f"log-{number}"
        self.command = [sys.executable, str(CONSUMER), *arguments, str(self.file)]
        self.file.touch()
        self.start()

    def start(self):
        self.begun_at = self.file.stat().st_size
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def has_read(self):
        return self.file.stat().st_size > self.begun_at

    def came(self):
        lines = self.file.read_text().splitlines(keepends=True)
        # A killed one may have left half a line; what it has not written, it has not committed.
        return [tuple(map(int, line.split())) for line in lines if line.endswith("\n") and line.count(" ") == 1]


class Scene:
    """The stream, two consumers, and what they have read."""

    def __init__(self, running, arguments, folder, chance):
        (folder / "sink").mkdir()
        self.running, self.arguments, self.folder, self.chance = running, arguments, folder, chance
        self.consumers = [Consumer(folder, number, *self.arguments) for number in range(2)]
        for consumer in self.consumers:
            running.callback(consumer.kill)
        self.start_stream()

    def start_stream(self):
        self.stream = self.running.enter_context(SparkProgram(STREAM, self.folder, *self.arguments, self.folder))
        self.begun_at = self.batches()

    def ready(self):
        """What has read since it was started: killing it again does something else than before."""
        stream = ["member", "driver"] if self.batches() > self.begun_at + 1 else []
        return stream + ["consumer" for consumer in self.consumers if consumer.has_read()]

    def batches(self):
        return len(list((self.folder / "sink").iterdir()))

    def came(self):
        found = Counter()
        for file in (self.folder / "sink").iterdir():
            found.update(tuple(row) for row in json.loads(file.read_text()))
        for consumer in self.consumers:
            found.update(consumer.came())
        return found

    def kill(self, what):
        """Kill one side in whatever it is doing, and start it again."""
        if what == "consumer":
            victim = self.chance.choice([consumer for consumer in self.consumers if consumer.has_read()])
            victim.kill()
            victim.start()
        elif what == "member":
            self.begun_at = self.batches()
            for pid, (_, command) in self.stream.processes().items():
                if b"python_streaming_source_runner" in command:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        else:
            self.stream.__exit__()
            self.start_stream()


def test_kills_on_both_sides_lose_nothing(apache_kafka, topic_name, group_id, tmp_path):
    seed = int(os.environ.get("LOADWISE_SEED", random.randrange(1 << 30)))
    print(f"LOADWISE_SEED={seed}")
    chance = random.Random(seed)
    make_topic(apache_kafka, topic_name, PARTITIONS)
    kills = []
    with ExitStack() as running, ExitStack() as writing:
        scene = Scene(running, (apache_kafka, topic_name, group_id), tmp_path, chance)
        written = writing.enter_context(traffic(apache_kafka, topic_name, SPREAD))
        scene.stream.wait_for(lambda: scene.batches() > 2)
        began = time.monotonic()
        while len(kills) < KILLS or time.monotonic() - began < SECONDS:
            time.sleep(chance.random() * 2)  # nothing waits for this: it varies what they are doing
            first = FIRST[len(kills) : len(kills) + 1]
            scene.stream.wait_for(lambda first=first: scene.ready() and set(first) <= set(scene.ready()))
            kills.append(chance.choice(first or scene.ready()))
            scene.kill(kills[-1])
        lasted_s = time.monotonic() - began
        writing.close()
        everything = {(partition, offset) for partition, size in written.items() for offset in range(size)}
        scene.stream.wait_for(lambda: everything <= set(scene.came()))
        came = scene.came()
    assert set(came) == everything
    repeats = sum(came.values()) - len(came)
    by_stream = sum(len(json.loads(file.read_text())) for file in (tmp_path / "sink").iterdir())
    most = 2 * len(kills) * IN_FLIGHT
    print(f"{len(kills)} kills in {lasted_s:.0f} s {dict(Counter(kills))}; {len(everything)} records, none lost,")
    print(f"{by_stream} read by the stream; {repeats} repeats, of {most} that there may be")
    assert repeats <= most
