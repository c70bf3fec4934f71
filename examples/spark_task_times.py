"""Draw how long each task of a Spark query runs over a skewed topic: with whole partitions, and with cut ones.

Run it with ``python examples/spark_task_times.py`` after ``pip install '.[coordinator,spark]'``; Spark needs a JDK 17.
It brings its own Kafka, a loadwise coordinator on loopback: give another's address as the only argument. It writes
``spark-task-times.html``. Where Spark's own Kafka source is on the class path
(``spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0``), its tasks are in the picture too.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from loadwise import Coordinator
from loadwise.compare.bars import STYLE, bars
from loadwise.report.page import document
from loadwise.spark_source.session import local_session

PARTITIONS = 8
RECORDS = 200_000
TASKS = 8
WORK = "max(sha2(repeat(value, 40), 512))"
"""Something to do for each record, so that a task with more of them takes longer."""


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else None
    with local_session("spark_task_times.py", master="local[2]") as spark, kafka(given) as bootstrap_servers:
        draw(spark, bootstrap_servers, RECORDS, Path("spark-task-times.html"))


@contextmanager
def kafka(given: str | None) -> Iterator[str]:
    if given is not None:
        yield given
        return
    with Coordinator().in_thread() as coordinator:
        yield coordinator.bootstrap_servers


def draw(spark: SparkSession, bootstrap_servers: str, records: int, page: Path) -> dict[str, list[float]]:
    """Write the page; answer the milliseconds of each task, by how the topic was read."""
    topic = f"clicks-{time.time_ns()}"
    publish(bootstrap_servers, topic, records)
    options = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic, "startingOffsets": "earliest"}
    ours = options | {"numTasks": str(TASKS)}
    times = {
        "loadwise, split=false": task_times_ms(spark, "loadwise", ours | {"split": "false"}),
        "loadwise, split=true": task_times_ms(spark, "loadwise", ours),
    }
    try:
        times["kafka"] = task_times_ms(spark, "kafka", options)
    except PySparkException as error:
        print(f"without Spark's own Kafka source, which is not on the class path ({type(error).__name__})")
    top = max(map(max, times.values()))
    body = []
    for name, mine in times.items():
        mean = sum(mine) / len(mine)
        summary = f"the longest task takes {max(mine) / mean:.2f} times the mean"
        print(f"{name}: {summary}")
        names = [str(index) for index in range(len(mine))]
        body += [f"<h2>{name}: {summary}</h2>", bars(name, summary, names, mine, mean=mean, top=top, bound=mean)]
    page.write_text(document("Milliseconds of each Spark task", body, style=STYLE), encoding="utf-8")
    return times


def task_times_ms(spark: SparkSession, source: str, options: dict[str, str]) -> list[float]:
    """Read and work through the topic; how long each reading task ran, in the order of tasks."""
    context = spark.sparkContext
    group = str(uuid.uuid4())
    context.setJobGroup(group, source)
    spark.read.format(source).options(**options).load().selectExpr(WORK).collect()
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    stages = [stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds]
    tasks = store.taskList(min(stages), 0, 10_000)
    times = {tasks.apply(at).index(): tasks.apply(at).duration().get() for at in range(tasks.size())}
    return [float(times[index]) for index in sorted(times)]


def publish(bootstrap_servers: str, topic: str, records: int) -> None:
    """Half of all records into partition 0: one customer who clicks more than all others."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": bootstrap_servers, "queue.buffering.max.messages": RECORDS})
    for number in range(records):
        partition = 0 if number % 2 else number // 2 % PARTITIONS
        producer.produce(topic, f"click {number}".encode(), partition=partition)
    producer.flush(60)


if __name__ == "__main__":
    main()
