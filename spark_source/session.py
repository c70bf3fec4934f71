"""What the user's own program can find out for a query: how many task slots Spark has, and how far a stream is behind.

Both need the session or the query, which the processes that Spark starts for a data source do not have.
"""

from __future__ import annotations

import json
from typing import Any

from loadwise.spark_source.planning.progress import Lag, lag, positions_of

_MANY = 1_000_000


def slots(spark: Any) -> int:
    """How many tasks the session runs at a time, for ``numTasks``: its default parallelism.

    Seldom needed: `loadwise.spark_source.planning.slots` mostly knows. Not where executors come and go.

    Runs a job of a moment, since Spark Connect has no other way to find out.
    """
    from pyspark.sql.functions import spark_partition_id  # noqa: PLC0415 - so that lag_of works on recorded progress

    return int(spark.range(_MANY).select(spark_partition_id().alias("task")).distinct().count())


def lag_of(source: Any) -> Lag | None:
    """How far one source of a ``StreamingQueryProgress`` was behind the end of its partitions.

    ``lag_of(query.lastProgress.sources[0])``; None before the first micro-batch. Of a member of a group: behind the end
    of those that it owns.
    """
    if not source.latestOffset or not source.endOffset:
        return None
    return lag(positions_of(json.loads(source.endOffset)), positions_of(json.loads(source.latestOffset)))
