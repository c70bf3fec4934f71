"""Scripts that people have for Spark's own Kafka source run with ours by one change, the name, and give the same.

They are ``scripts/*.py``, whole programs; each is run as it stands and with ``format("loadwise")``, nothing else.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from uuid import uuid4

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from confluent_kafka import Producer
from topics import WAIT_S, make_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SCRIPTS = sorted(Path(__file__).with_name("scripts").glob("*.py"))
SIZES = {"": [80, 25, 10], "-more": [30]}
"""Records in each partition of the topics, by what their names end in."""
BEGIN_MS, STEP_MS = 1_700_000_000_000, 60_000
"""When the first record of each partition was made, and the time from one to the next: as the scripts have it."""
OURS, THEIRS = '.format("loadwise")', '.format("kafka")'


@pytest.fixture(scope="module")
def clicks(apache_kafka):
    """The broker and the name of a topic of clicks; another topic's name begins with it."""
    name = f"clicks-{uuid4().hex[:8]}"
    producer = Producer({"bootstrap.servers": apache_kafka, "enable.idempotence": True, "log_level": 0})
    for more, sizes in SIZES.items():
        # The records are of 2023: with the usual retention of a week the broker deletes them within minutes.
        make_topic(apache_kafka, name + more, len(sizes), {"retention.ms": "-1"})
        for partition, size in enumerate(sizes):
            for number in range(size):
                producer.produce(
                    name + more,
                    b'{"page": "%s", "ms": %d}' % ([b"home", b"basket"][number % 2], number),
                    None if number % 5 == 4 else f"user-{number % 7}",
                    partition,
                    timestamp=BEGIN_MS + number * STEP_MS,
                    headers=[("trace", f"{partition}/{number}"), ("trace", None)][: number % 3],
                )
    assert producer.flush(WAIT_S) == 0
    return apache_kafka, name


@pytest.fixture
def written(spark, connector, clicks, tmp_path, monkeypatch):
    """Runs a script; answers what it wrote: how often each row."""

    def run(text, source):
        out = tmp_path / source
        monkeypatch.setattr(sys, "argv", ["script.py", *clicks, str(out)])
        exec(compile(text, source, "exec"), {"__name__": "__main__"})
        read = spark.read.parquet if any(out.glob("*.parquet")) else spark.read.json
        return Counter(read(str(out)).collect())

    return run


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_runs_by_that_one_change(written, script):
    text = script.read_text()
    assert text.count(THEIRS) == 1
    theirs = written(text, "kafka")
    assert theirs
    assert written(text.replace(THEIRS, OURS), "loadwise") == theirs
