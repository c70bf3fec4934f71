"""The Spark benchmark's own arithmetic, and its tables; that it runs is shown in ``tests/spark_source``."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from itertools import pairwise

import pytest
from topics import WAIT_S

from benchmarks.spark.batches import PARTITIONS, in_turn, partition_of
from benchmarks.spark.cpu import CpuMeter
from benchmarks.spark.delay import delay_proxy
from benchmarks.spark.readers import batch_readers, by_hand, stream_readers
from benchmarks.spark.results import Measured, Scenario, all_columns_table, medians, table

SKEWED = Scenario("skewed, count", 2)
NEAR_EMPTY = Scenario("near-empty micro-batches, 1 a partition", 8, micro=True)
RESULTS = {
    SKEWED: {
        "loadwise": Measured(2.0, 4.0, 1.11, 151.0),
        "kafka": Measured(5.0, 2.5, 2.3),
        "ready": Measured(0.8, 1.0, 1.0),
        "kafka, tuned": Measured(1.5, 2.2, 4.7),
        "kafka, tuned, minPartitions=24": Measured(1.0, 2.2, 1.7),
    },
    NEAR_EMPTY: {
        "loadwise": Measured(0.2, 0.1),
        by_hand(8): Measured(0.4, 0.1),
        "kafka": Measured(0.8, 0.1),
        "kafka, tuned": Measured(0.25, 0.1),
    },
}


def test_half_of_a_skewed_topic_is_in_one_partition_and_the_rest_is_shared() -> None:
    skewed = Counter(partition_of(number, "skewed") for number in range(22_000))
    assert skewed == {0: 11_000} | dict.fromkeys(range(1, PARTITIONS), 1000)
    uniform = Counter(partition_of(number, "uniform") for number in range(12_000))
    assert uniform == dict.fromkeys(range(PARTITIONS), 1000)


def test_medians_are_those_of_each_figure_by_itself() -> None:
    rows = [Measured(3, 1, 1.5, 40), Measured(1, 3, 1.1, 60), Measured(2, 2, 1.2, 90)]
    assert medians(rows) == Measured(2, 2, 1.2, 60)
    assert medians([Measured(1, 2)]) == Measured(1, 2)


def test_another_reader_begins_each_turn() -> None:
    readers = batch_readers(2, 24, connector=True)
    turns = [in_turn(readers, turn) for turn in range(len(readers))]
    assert [turn[0] for turn in turns] == readers
    assert all(sorted(each.name for each in turn) == sorted(each.name for each in readers) for turn in turns)
    before = {pair for turn in turns for pair in pairwise(each.name for each in turn)}
    assert all(len({first for first, then in before if then == each.name}) >= 3 for each in readers)


def test_what_passes_a_delaying_proxy_arrives_whole_and_not_before_its_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker, delay_proxy(100) as proxy:
        proxy.lead_to(f"127.0.0.1:{broker.getsockname()[1]}")
        sent = os.urandom(5 << 20)
        with socket.create_connection(tuple(proxy.address.split(":"))) as client:
            there, _ = broker.accept()
            with there:
                began = time.monotonic()
                client.sendall(b"question")
                assert there.recv(100) == b"question"
                there.sendall(sent)
                there.shutdown(socket.SHUT_WR)
                with client.makefile("rb") as came:
                    first = came.read(1)
                    assert time.monotonic() - began >= 0.1
                    assert first + came.read() == sent


def test_a_table_has_a_line_a_reader_in_the_scenarios_unit() -> None:
    assert _cells(table(SKEWED, RESULTS[SKEWED]))[2:4] == [
        ["loadwise", "2.00", "4.00", "1.11", "151", "1.00"],
        ["kafka", "5.00", "2.50", "2.30", "", "0.40"],
    ]
    assert _cells(table(NEAR_EMPTY, RESULTS[NEAR_EMPTY]))[-1] == ["kafka, tuned", "250", "100", "", "", "0.80"]


def test_the_table_of_the_docs_has_batches_with_all_columns_beside_a_near_kafka() -> None:
    measured = {"loadwise": Measured(0.42, 0.66), "kafka": Measured(3.95, 1.06)}
    wanted, far = Scenario("uniform, all columns", 2), Scenario("uniform, all columns", 2, delay_ms=20)
    heads, _, *rows = _cells(all_columns_table({**RESULTS, wanted: measured, far: measured}))
    assert heads == ["", "loadwise", "ready", "kafka", "kafka, tuned"]
    assert rows == [["2 slots, uniform", "0.42 / 0.66", "", "3.95 / 1.06", ""]]
    assert all_columns_table(RESULTS) == ""


def _cells(lines: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines()]


@pytest.mark.parametrize("readers", [partial(batch_readers, 2, 24), partial(stream_readers, 2)])
def test_readers_differ_in_name_and_the_connectors_can_be_left_out(readers) -> None:
    everybody = readers(connector=True)
    names = [reader.name for reader in everybody]
    assert len(set(names)) == len(names)
    assert {reader.format for reader in everybody} == {"loadwise", "kafka", "ready"}
    assert {reader.format for reader in readers(connector=False)} == {"loadwise", "ready"}


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
                deadline = time.monotonic() + WAIT_S
                while cpu.used_s < 0.25:
                    assert time.monotonic() < deadline
                    time.sleep(0.02)  # between two looks
        process.communicate(b"\n")
    assert 0.25 <= cpu.used_s < 60, "what the child used stays when it has ended"
