"""For the user's own program: a Spark of this machine, how many task slots there are, a stream's lag and imbalance.

All but the first need the session or the query, which the processes that Spark starts for a data source do not have.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from loadwise.spark_source.planning.progress import MEMBER, MODE, Lag, from_json, imbalance, lag, positions_of

_MANY = 1_000_000

_OF_THIS_MACHINE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
_QUIET = {"spark.ui.showConsoleProgress": "false"}


@contextmanager
def local_session(name: str, *, master: str = "local[*]", settings: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A `SparkSession` for the length of a with block, which finds ``format("loadwise")`` in this environment.

    It runs on this machine, listens on loopback only and has no user interface; ``settings`` are added to that. Under
    ``spark-submit`` it is the session that was submitted, where it was and as it was told to be.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - so that lag_of works on recorded progress

    if "PYSPARK_PYTHON" not in os.environ:  # Spark looks for the data source with the `python3` on PATH
        os.environ |= python_for_spark(sys.executable, os.environ.get("PATH", ""))
    builder = SparkSession.builder.appName(name)
    mine = _QUIET if "PYSPARK_GATEWAY_PORT" in os.environ else _QUIET | _OF_THIS_MACHINE | {"spark.master": master}
    session = builder.config(map=mine | dict(settings or {})).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def slots(spark: Any) -> int:
    """How many tasks the session runs at a time, for ``numTasks``: its default parallelism.

    Seldom needed: `loadwise.spark_source.planning.slots` mostly knows. Not where executors come and go.

    Runs a job of a moment, since Spark Connect has no other way to find out.
    """
    from pyspark.sql.functions import spark_partition_id  # noqa: PLC0415 - so that lag_of works on recorded progress

    return int(spark.range(_MANY).select(spark_partition_id().alias("task")).distinct().count())


def lag_of(source: Any) -> Lag | None:
    """How far one source of a ``StreamingQueryProgress`` was behind the end of its partitions.

    ``lag_of(query.lastProgress.sources[0])``. Of a member of a group: behind the end of those that it owns.

    None where the progress does not tell where the partitions end, or how far the query has got: before the first
    micro-batch, and of one that a restarted query replays, since Spark has not asked for an end of it then
    (``MicroBatchExecution``).
    """
    end, latest = _told(source.endOffset), _told(source.latestOffset)
    if end is None or latest is None:
        return None
    return lag(positions_of(end), positions_of(latest))


def imbalance_of(source: Any) -> float | None:
    """How uneven the partitions were in what a micro-batch read: the most of any by the mean, 1.0 at best.

    It is how much longer the longest task would have taken than the mean with a task for each partition. ``source`` is
    one of a ``StreamingQueryProgress``. None where nothing was read, or where the progress does not tell where the
    micro-batch began or ended, as that of the first one. Of a member of a group: among those that it read.
    """
    start, end = _told(source.startOffset), _told(source.endOffset)
    if start is None or end is None:
        return None
    if end.get(MODE) == MEMBER:
        return imbalance(from_json(end["begins"]), positions_of(end)) if start != end else None
    return imbalance(positions_of(start), positions_of(end))


def _told(offset: str | None) -> dict[str, Any] | None:
    """An offset of a progress, None where there is none.

    Spark's null is ``"null"`` in the progress of a query, and ``"None"`` in the one that a listener is given.
    """
    if not offset or offset == "None":
        return None
    told: dict[str, Any] | None = json.loads(offset)
    return told


def python_for_spark(executable: str, path: str) -> dict[str, str]:
    """Return the environment variables with which Spark runs this Python.

    Spark splits PYSPARK_PYTHON at spaces when it checks that Python is there (``Utils.checkCommandAvailable``). If the
    path has one, its folder comes first on PATH, and the command has no folder.
    """
    if " " not in executable:
        return {"PYSPARK_PYTHON": executable}
    folder, name = os.path.split(executable)
    return {"PATH": os.pathsep.join([folder, path]), "PYSPARK_PYTHON": name}
