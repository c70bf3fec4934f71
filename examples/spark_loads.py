"""Write the load of partitions by hour, as a table for ``loadwise loads`` and ``loadwise compare --loads``.

For a cluster: ``spark-submit examples/spark_loads.py broker:9092 clicks s3a://lake/loads s3a://lake/loads-checkpoint``
reads the records since its last run, so run it every hour or day. Executors: docs/spark-deploying.md.
On one machine ``loadwise loads`` does the same.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from loadwise.loads.job import write_new
from loadwise.spark_source.session import use_this_python


def main(bootstrap_servers: str, topics: str, folder: str, checkpoint: str) -> None:
    use_this_python()  # else Spark looks for the data source with the `python3` on PATH
    spark = SparkSession.builder.appName("loads of Kafka's partitions").getOrCreate()
    options = {
        "kafka.bootstrap.servers": bootstrap_servers,
        "subscribe": topics,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "100000000",
    }
    write_new(spark, options, folder, checkpoint)


if __name__ == "__main__":
    main(*sys.argv[1:])
