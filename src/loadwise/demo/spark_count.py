"""The demo's Spark job, as a program of its own: how many records each task of a weighted plan reads.

It prints one JSON list, a number a task that read anything.
"""

from __future__ import annotations

import argparse
import json
import os
import sys


def main() -> None:
    """Count the records of a topic through ``format("loadwise")``, by task."""
    parser = argparse.ArgumentParser(prog="python -m loadwise.demo.spark_count", description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--tasks", type=int, required=True)
    args = parser.parse_args()

    # Spark's own Python processes look for the data source too: they must be of this environment, activated or not.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

    from pyspark.sql import SparkSession
    from pyspark.sql.functions import spark_partition_id

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("loadwise demo")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        # One short job: compiling it thoroughly would take longer than running it (19 s of CPU against 9).
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    try:
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
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
