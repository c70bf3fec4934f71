"""The Spark session that measures."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from session_of_its_own import session_of_its_own

from benchmarks import ROOT
from benchmarks.spark.ready import ReadySource
from loadwise.spark_source.session import python_for_spark


@contextmanager
def session(slots: int, *, jars: str, log: Path) -> Iterator[Any]:
    """A local session with these jars in a JVM of its own, whose standard error goes to the end of a file."""
    # Whatever the shell has: it is this environment that is measured.
    os.environ |= python_for_spark(sys.executable, os.environ.get("PATH", ""))
    # Spark's Python processes find `benchmarks.spark.ready` by it.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    settings = {"spark.driver.memory": "2g"} | ({"spark.jars": jars} if jars else {})
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
