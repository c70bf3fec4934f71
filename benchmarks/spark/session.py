"""The Spark session that measures, and how long its tasks ran."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def session(slots: int, *, jars: str, log: Path) -> Iterator[Any]:
    """A local session with these jars in a JVM of its own, whose standard error goes to the end of a file."""
    from pyspark.sql import SparkSession

    # Spark looks for the data source with the `python3` on PATH, unless it is told which environment has it.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master(f"local[{slots}]")
        .appName("loadwise benchmark")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # Between two looks for records: a micro-batch then seldom begins while its records are still being written.
        .config("spark.sql.streaming.pollingDelay", "200ms")
        .config("spark.sql.streaming.numRecentProgressUpdates", "10")
    )
    if jars:
        builder = builder.config("spark.jars", jars)
    with _standard_error_in(log):
        spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        context = type(spark.sparkContext)
        spark.stop()
        gateway = context._gateway
        if gateway is not None:  # stop() leaves the JVM, which waits for its standard input to close
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(60)
            context._gateway = context._jvm = None


@contextmanager
def _standard_error_in(log: Path) -> Iterator[None]:
    """Processes that are started in the with block write their standard error to the end of a file."""
    sys.stderr.flush()
    ours = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def task_times_s(spark: Any, group: str) -> list[float]:
    """How long each task ran of the first stage of a job group's first job: the one that reads."""
    context = spark.sparkContext
    tracker = context.statusTracker()
    stages = [stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds]
    store = context._jsc.sc().statusStore()
    tasks = store.taskList(min(stages), 0, 10_000)
    return [tasks.apply(index).duration().get() / 1000 for index in range(tasks.size())]
