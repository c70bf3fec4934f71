"""Read a skewed topic with Spark, in tasks that are even although its partitions are not.

Run it with ``python examples/spark_batch.py`` after ``pip install '.[coordinator,spark]'``; Spark needs a JDK 17. It
brings its own Kafka, a loadwise coordinator on loopback: give another's address as the only argument.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id

from loadwise import Coordinator
from loadwise.spark_source.session import local_session

PARTITIONS = 8
RECORDS = 20_000
TASKS = 4


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else None
    with local_session("spark_batch.py", master="local[2]") as spark, kafka(given) as bootstrap_servers:
        compare(spark, bootstrap_servers)


@contextmanager
def kafka(given: str | None) -> Iterator[str]:
    if given is not None:
        yield given
        return
    with Coordinator().in_thread() as coordinator:
        yield coordinator.bootstrap_servers


def compare(spark: SparkSession, bootstrap_servers: str) -> dict[str, list[int]]:
    """Records of each task: with whole partitions, and with partitions cut where they are above a fair share."""
    topic = f"clicks-{time.time_ns()}"
    publish(bootstrap_servers, topic)
    shares = {}
    for split in ("false", "true"):
        clicks = (
            spark.read.format("loadwise")
            .option("kafka.bootstrap.servers", bootstrap_servers)
            .option("subscribe", topic)
            .option("numTasks", TASKS)
            .option("split", split)
            .load()
        )
        counts = {
            row.task: row["count"] for row in clicks.groupBy(spark_partition_id().alias("task")).count().collect()
        }
        shares[split] = share = [counts.get(task, 0) for task in range(TASKS)]
        skew = max(share) * TASKS / sum(share)
        print(f"split={split}: {sum(share):,} records in tasks of {share}; the longest has {skew:.2f} times the mean")
    return shares


def publish(bootstrap_servers: str, topic: str) -> None:
    """Half of all records into partition 0: one customer who clicks more than all others."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(RECORDS):
        partition = 0 if number % 2 else number // 2 % PARTITIONS
        producer.produce(topic, f"click {number}".encode(), partition=partition)
    producer.flush(60)


if __name__ == "__main__":
    main()
