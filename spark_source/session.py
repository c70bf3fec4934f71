"""For the user's own program: a local session, the number of task slots, and a stream's lag and imbalance."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loadwise.spark_source.planning.progress import MEMBER, MODE, Lag, from_json, imbalance, lag, positions_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import SourceProgress

_MANY = 1_000_000

_OF_THIS_MACHINE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
_QUIET = {"spark.ui.showConsoleProgress": "false"}


@contextmanager
def local_session(
    name: str, *, master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A `SparkSession` for a with block, which finds ``format("loadwise")`` in this environment.

    It runs on this machine, listens on loopback only and has no user interface; ``settings`` are added to that. Under
    ``spark-submit`` it is the submitted session, with its own settings.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - so that lag_of works on recorded progress

    use_this_python()
    builder = SparkSession.builder.appName(name)
    mine = _QUIET if "PYSPARK_GATEWAY_PORT" in os.environ else _QUIET | _OF_THIS_MACHINE | {"spark.master": master}
    session = builder.config(map=mine | dict(settings or {})).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def slots(spark: SparkSession) -> int:
    """Return how many tasks the session runs at a time, for ``numTasks``: its default parallelism.

    Needed only with dynamic allocation or settings that the driver's JVM was not started with. It runs a short job,
    because Spark Connect has no other way.
    """
    from pyspark.sql.functions import spark_partition_id  # noqa: PLC0415 - so that lag_of works on recorded progress

    return int(spark.range(_MANY).select(spark_partition_id().alias("task")).distinct().count())


def lag_of(source: SourceProgress) -> Lag | None:
    """Return how far a source was behind the end of its partitions: ``lag_of(query.lastProgress.sources[0])``.

    For a member of a group, only its own partitions count. None if the progress has no end of the partitions, or no
    end of the micro-batch: before the first one, and in a replay after a restart, for which Spark does not ask for an
    end (``MicroBatchExecution``).
    """
    end, latest = _offset(source.endOffset), _offset(source.latestOffset)
    if end is None or latest is None:
        return None
    return lag(positions_of(end), positions_of(latest))


def imbalance_of(source: SourceProgress) -> float | None:
    """Return how uneven the partitions of a micro-batch were: the largest over the mean, 1.0 at best.

    With a task for each partition, the longest task would have taken so much longer than the mean. ``source`` is
    one of a ``StreamingQueryProgress``. None if nothing was read, or if the progress has no start or no end, as that of
    the first micro-batch. For a member of a group, only the partitions that it read count.
    """
    start, end = _offset(source.startOffset), _offset(source.endOffset)
    if start is None or end is None:
        return None
    if end.get(MODE) == MEMBER:
        return imbalance(from_json(end["begins"]), positions_of(end)) if start != end else None
    return imbalance(positions_of(start), positions_of(end))


def _offset(text: str | None) -> dict[str, Any] | None:
    """Parse an offset of a progress.

    Null is ``"null"`` in a query's progress, and ``"None"`` in a listener's. Before PySpark 4.2 a query's progress has
    the text of a Python dict (``SourceProgress.fromJson``), and a listener's has JSON.
    """
    if not text or text == "None":
        return None
    try:
        offset: dict[str, Any] | None = json.loads(text)
    except json.JSONDecodeError:
        offset = ast.literal_eval(text)
    return offset


def use_this_python() -> None:
    """Let Spark run this Python, unless PYSPARK_PYTHON is set. Call it before the session is created."""
    if "PYSPARK_PYTHON" not in os.environ:
        os.environ |= python_for_spark(sys.executable, os.environ.get("PATH", ""))


def python_for_spark(executable: str, path: str) -> dict[str, str]:
    """Return the environment variables with which Spark runs this Python.

    Spark splits PYSPARK_PYTHON at spaces when it checks that Python is there (``Utils.checkCommandAvailable``). If the
    path has one, its folder comes first on PATH, and the command has no folder.
    """
    if " " not in executable:
        return {"PYSPARK_PYTHON": executable}
    folder, name = os.path.split(executable)
    return {"PATH": os.pathsep.join([folder, path]), "PYSPARK_PYTHON": name}
