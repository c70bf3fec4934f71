"""The Spark session that measures."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from session_of_its_own import session_of_its_own

from benchmarks import ROOT
from benchmarks.spark.ready import ReadySource
from loadwise.spark_source.session import python_for_spark


@contextmanager
def session(slots: int, *, jars: str) -> Iterator[Any]:
    """A local session with these jars in a JVM of its own."""
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
    with session_of_its_own("loadwise benchmark", master=f"local[{slots}]", settings=settings) as spark:
        spark.sparkContext.setLogLevel("ERROR")
        spark.dataSource.register(ReadySource)
        yield spark
