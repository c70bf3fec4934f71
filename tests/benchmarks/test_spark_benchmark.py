"""The Spark benchmark's own arithmetic; that it runs is shown in ``tests/spark_source``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import pytest
from topics import until

from benchmarks.processes import CpuMeter
from benchmarks.records import PARTITIONS, partition_of
from benchmarks.spark.batches import in_turn, readers


def test_half_of_a_skewed_topic_is_in_one_partition_and_the_rest_is_shared() -> None:
    skewed = Counter(partition_of(number, "skewed") for number in range(22_000))
    assert skewed == {0: 11_000} | dict.fromkeys(range(1, PARTITIONS), 1000)
    uniform = Counter(partition_of(number, "uniform") for number in range(12_000))
    assert uniform == dict.fromkeys(range(PARTITIONS), 1000)


def test_another_reader_begins_each_turn() -> None:
    everybody = readers(2, 24, connector=True)
    turns = [in_turn(everybody, turn) for turn in range(len(everybody))]
    assert [turn[0] for turn in turns] == everybody
    assert all(sorted(each.name for each in turn) == sorted(each.name for each in everybody) for turn in turns)
    before = {pair for turn in turns for pair in pairwise(each.name for each in turn)}
    assert all(len({first for first, then in before if then == each.name}) >= 3 for each in everybody)


def test_the_connector_can_be_left_out() -> None:
    assert {reader.format for reader in readers(2, 24, connector=True)} == {"loadwise", "kafka", "ready"}
    assert {reader.format for reader in readers(2, 24, connector=False)} == {"loadwise", "ready"}


def test_minimum_partitions_are_the_tuned_connectors() -> None:
    *others, tuned = readers(2, 24, connector=True, min_partitions=24)
    assert others == readers(2, 24, connector=True)[:-1]
    assert tuned.name == "kafka, tuned, minPartitions=24"
    assert tuned.options["minPartitions"] == "24"


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="CPU times of other processes are read in /proc")
def test_cpu_time_is_that_of_a_process_and_all_below_it_though_nobody_waits_for_them() -> None:
    child = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    parent = (
        "import signal, subprocess, sys\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"  # as PySpark's daemon does
        "input()\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}]).wait()\n"
        "print('ended', flush=True)\n"
        "input()"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with CpuMeter(process.pid) as cpu:
            for said in (b"done", b"ended"):
                process.stdin.write(b"\n")
                process.stdin.flush()
                assert process.stdout.readline().strip() == said
                until(lambda: cpu.used_s >= 0.25)
        process.communicate(b"\n")
    assert 0.25 <= cpu.used_s < 60, "what the child used stays when it has ended"
