"""Read a topic with Spark as a stream, in even tasks, and see how far the query is behind.

Run it with ``python examples/spark_stream.py`` after ``pip install '.[coordinator,spark]'``; Spark needs a JDK 17. It
brings its own Kafka, a loadwise coordinator on loopback: give another's address as the only argument.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from loadwise import Coordinator
from loadwise.spark_source.session import lag_of, local_session, slots

CLICKS = {"home": 900, "basket": 300, "search": 200}


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else None
    with (
        local_session("spark_stream.py", master="local[2]") as spark,
        kafka(given) as bootstrap_servers,
        tempfile.TemporaryDirectory() as checkpoint,
    ):
        follow_the_clicks(spark, bootstrap_servers, checkpoint)


@contextmanager
def kafka(given: str | None) -> Iterator[str]:
    if given is not None:
        yield given
        return
    with Coordinator().in_thread() as coordinator:
        yield coordinator.bootstrap_servers


def follow_the_clicks(spark: SparkSession, bootstrap_servers: str, checkpoint: str) -> dict[str, int]:
    """Count the clicks on each page, half of them published while the query runs; stop when there are no more."""
    topic = f"clicks-{time.time_ns()}"
    publish(bootstrap_servers, topic, partitions=4)
    clicks = (
        spark.readStream.format("loadwise")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 500)
        .option("numTasks", slots(spark))
        .option("kafka.group.id", f"{topic}-readers")
        .option("commitGroup", "true")  # so that tools that watch Kafka's groups see how far this query is
        .load()
    )
    counts: Counter[str] = Counter()

    def count(batch: DataFrame, number: int) -> None:
        for row in batch.groupBy(col("value").cast("string").alias("page")).count().collect():
            counts[row.page] += row["count"]
        print(f"micro-batch {number}: {counts.total():,} clicks so far")

    writer = clicks.writeStream.foreachBatch(count).option("checkpointLocation", checkpoint)
    query = writer.trigger(processingTime="200 milliseconds").start()
    try:
        publish(bootstrap_servers, topic)
        while counts.total() < 2 * sum(CLICKS.values()) and query.isActive:
            time.sleep(0.1)
        query.processAllAvailable()
        if query.lastProgress is not None:
            print(f"{lag_of(query.lastProgress.sources[0])}: {dict(counts)}")
    finally:
        query.stop()
    return dict(counts)


def publish(bootstrap_servers: str, topic: str, partitions: int = 0) -> None:
    """All clicks on a page go to one partition, so that partitions are as uneven as pages."""
    if partitions:
        admin = AdminClient({"bootstrap.servers": bootstrap_servers})
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for partition, (page, clicks) in enumerate(CLICKS.items()):
        for _ in range(clicks):
            producer.produce(topic, page.encode(), partition=partition)
    producer.flush(60)


if __name__ == "__main__":
    main()
