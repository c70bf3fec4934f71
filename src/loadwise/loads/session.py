"""A local Spark for one command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession


@contextmanager
def local_session() -> Iterator[Any]:
    """A Spark session on this machine, or the one that there is already, e.g. by spark-submit. It is stopped again."""
    # Spark looks for the data source with the `python3` on PATH, unless it is told which environment has it.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("loadwise loads").config("spark.ui.showConsoleProgress", "false")
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        builder = builder.config("spark.ui.enabled", "false")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
