"""The Spark session that measures, and how long its tasks ran."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.spark.environment import ROOT, session_of_its_own
from benchmarks.spark.ready import ReadySource
from loadwise.spark_source.session import python_for_spark


@contextmanager
def session(slots: int, *, jars: str, log: Path) -> Iterator[Any]:
    """A local session with these jars in a JVM of its own, whose standard error goes to the end of a file."""
    # Whatever the shell has: it is this environment that is measured.
    os.environ |= python_for_spark(sys.executable, os.environ.get("PATH", ""))
    # Spark's Python processes find `benchmarks.spark.ready` by it.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    settings = {
        "spark.driver.memory": "2g",
        # Between two looks for records: a micro-batch then seldom begins while its records are still being written.
        "spark.sql.streaming.pollingDelay": "200ms",
        "spark.sql.streaming.numRecentProgressUpdates": "10",
    }
    if jars:
        settings["spark.jars"] = jars
    with ExitStack() as running:
        with _standard_error_in(log):
            spark = running.enter_context(
                session_of_its_own("loadwise benchmark", master=f"local[{slots}]", settings=settings)
            )
        spark.dataSource.register(ReadySource)
        yield spark


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
