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
import sys
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from spark_program import SparkProgram
from topics import fill, make_topic
from traffic import traffic

KILLS = int(os.environ.get("LOADWISE_KILLS", "1"))
PROGRAM = Path(__file__).with_name("counted_stream.py")
PARTITIONS = 3
SPREAD = (0, 0, 0, 0, 0, 1, 2)
"""Where records are written to: most of them to partition 0."""
STALLED = (0, 1)
"""Micro-batches that a driver is killed in: the first is empty, the second is not."""
BEFORE = 5
"""Records in each partition before anybody reads: what "latest" leaves out."""

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.timeout(900 + 120 * KILLS),
    pytest.mark.skipif(sys.platform != "linux", reason="finds Spark's processes in /proc"),
]


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
        written = running.enter_context(traffic(apache_kafka, topic_name, SPREAD, before=BEFORE))
        for kill in range(KILLS):
            if kill in STALLED:
                with SparkProgram(PROGRAM, tmp_path, apache_kafka, topic_name, tmp_path, kill) as query:
                    query.wait_for((tmp_path / "unfinished" / str(kill)).exists)
                killed[kill] = kept.read(f"unfinished/{kill}")
                if kill == 0:
                    first = kept.end(0)  # now, for Spark keeps what it has written of 100 micro-batches
            else:
                with SparkProgram(PROGRAM, tmp_path, apache_kafka, topic_name, tmp_path) as query:
                    kill_a_worker(query, kept, chance)
                    time.sleep(chance.random() * 0.3)  # likewise, the driver
        with SparkProgram(PROGRAM, tmp_path, apache_kafka, topic_name, tmp_path) as query:
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
