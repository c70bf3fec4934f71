"""The PySpark job of ``loadwise loads``: reads topics, and writes the load of each partition and hour to Parquet.

`hourly` makes one DataFrame of another: use it in a job of your own, on your cluster, as ``examples/spark_loads.py``
does. The columns are those of `loadwise.assignor.load.history`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Window
from pyspark.sql import functions as f

from loadwise.spark_source.planning.query import partition_counts

HOT_KEYS = 20
"""How many keys of each partition and hour are kept."""


def hourly(records: Any, *, hot_keys: int = HOT_KEYS, partitions: Mapping[str, int] | None = None) -> Any:
    """Return a row for each partition and hour (UTC) of records with the columns of Spark's Kafka sources.

    For streams, use it on each micro-batch (``foreachBatch``): rows of several add up. ``partitions`` is the number of
    each topic; without it, empty partitions behind the last one with records are unknown.
    """

    def size(name: str) -> Any:
        return f.coalesce(f.octet_length(name), f.lit(0)).cast("long")

    hour = f.timestamp_seconds(f.floor(f.unix_seconds("timestamp") / 3600) * 3600).alias("hour")
    of_partition = ["topic", "partition", "hour"]
    by_key = (
        records.select("topic", "partition", hour, "key", (size("key") + size("value")).alias("bytes"))
        .groupBy(*of_partition, "key")
        .agg(f.count(f.lit(1)).alias("records"), f.sum("bytes").alias("bytes"))
    )
    # Records without a key are no hot key, however many.
    hottest = Window.partitionBy(*of_partition).orderBy(f.col("key").isNull(), f.desc("bytes"), "key")
    is_hot = (f.col("rank") <= hot_keys) & f.col("key").isNotNull()
    return (
        by_key.withColumn("rank", f.row_number().over(hottest))
        .groupBy(*of_partition)
        .agg(
            f.sum("records").alias("records"),
            f.sum("bytes").alias("bytes"),
            f.count("key").alias("keys"),
            f.collect_list(f.when(is_hot, f.struct("key", "records", "bytes"))).alias("hot"),
        )
        .withColumn("partitions", _of_topic(partitions or {}))
    )


def _of_topic(counts: Mapping[str, int]) -> Any:
    pairs = [f.lit(each) for pair in counts.items() for each in pair]
    return (f.create_map(*pairs)[f.col("topic")] if pairs else f.lit(None)).cast("int")


def write_batch(spark: Any, options: Mapping[str, str], folder: str, *, hot_keys: int = HOT_KEYS) -> None:
    """Read the query ``options`` once, and write its table to a folder, whose content it replaces."""
    records = spark.read.format("loadwise").options(**options).load()
    rows = hourly(records, hot_keys=hot_keys, partitions=partition_counts(options))
    rows.coalesce(1).write.mode("overwrite").parquet(folder)


def write_new(
    spark: Any, options: Mapping[str, str], folder: str, checkpoint: str, *, hot_keys: int = HOT_KEYS
) -> None:
    """Add the records since the last run with this checkpoint: a folder ``batch=N`` for each micro-batch.

    A micro-batch that is repeated after a failure replaces its first attempt.
    """
    partitions = partition_counts(options, streaming=True)

    def write(batch: Any, number: int) -> None:
        rows = hourly(batch, hot_keys=hot_keys, partitions=partitions).coalesce(1)
        rows.write.mode("overwrite").parquet(f"{folder.rstrip('/')}/batch={number}")

    stream = spark.readStream.format("loadwise").options(**options).load()
    writer = stream.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
