"""The demo's Spark job, as a program of its own: how many records each task of a weighted plan reads.

It prints one JSON list, a number a task that read anything.
"""

from __future__ import annotations

import argparse
import json

from loadwise.spark_source.session import local_session


def main() -> None:
    """Count the records of a topic through ``format("loadwise")``, by task."""
    parser = argparse.ArgumentParser(prog="python -m loadwise.demo.spark_count", description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--tasks", type=int, required=True)
    args = parser.parse_args()

    from pyspark.sql.functions import spark_partition_id

    # One short job: compiling it thoroughly would take longer than running it (19 s of CPU against 9).
    settings = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "1",
    }
    with local_session("loadwise demo", master="local[2]", settings=settings) as spark:
        records = (
            spark.read.format("loadwise")
            .option("kafka.bootstrap.servers", args.bootstrap_servers)
            .option("subscribe", args.topic)
            .option("assignor", "weighted")
            .option("numTasks", args.tasks)
            .option("loadBy", "records")  # which is what is shown
            .load()
        )
        by_task = records.groupBy(spark_partition_id().alias("task")).count().collect()
        print(json.dumps([row["count"] for row in sorted(by_task, key=lambda row: row["task"])]), flush=True)  # noqa: T201  # its result


if __name__ == "__main__":
    main()
