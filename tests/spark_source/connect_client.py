"""A program that uses Spark through Spark Connect, with no JVM of its own: a batch, streams, and a wrong option.

``connect_client.py REMOTE BOOTSTRAP TOPIC GROUP FOLDER``: writes what it has read as JSON to its standard output. The
second stream is a member of the group.
"""

from __future__ import annotations

import json
import sys
import time

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id

from loadwise.spark_source.session import lag_of, slots


def main(remote: str, brokers: str, topic: str, group: str, folder: str) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()
    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic}
    found = str(slots(spark))
    batch = spark.read.format("loadwise").options(**options, numTasks=found).load()
    rows = batch.select(spark_partition_id().alias("task"), "partition", "offset").collect()

    costly = spark.read.format("loadwise").options(**options, costPerRecord=json.dumps({topic: 1000})).load()
    by_default = costly.select(spark_partition_id().alias("task")).distinct().count()

    stream = spark.readStream.format("loadwise").options(**options, startingOffsets="earliest").load()
    writer = stream.select("partition", "offset").writeStream.format("memory").queryName("seen")
    query = writer.option("checkpointLocation", f"{folder}/stream").trigger(availableNow=True).start()
    query.awaitTermination()
    lag = lag_of(query.lastProgress.sources[0])

    joins = {"kafka.group.id": group, "kafka.session.timeout.ms": "60000", "assignment.mode": "member"}
    member = spark.readStream.format("loadwise").options(**options, **joins, startingOffsets="earliest").load()
    writer = member.select("partition", "offset").writeStream.format("memory").queryName("shared")
    writer = writer.option("checkpointLocation", f"{folder}/member").trigger(processingTime="100 milliseconds")
    query = writer.start()
    while query.isActive and spark.table("shared").count() < len(rows):
        time.sleep(0.1)  # between two looks
    query.stop()

    refused = ""
    try:
        spark.read.format("loadwise").options(**options, startingOffset="latest").load().count()
    except PySparkException as error:
        refused = str(error)
    told = {
        "numTasks": found,
        "by default": by_default,
        "batch": [tuple(row) for row in rows],
        "stream": [tuple(row) for row in spark.table("seen").collect()],
        "member": [tuple(row) for row in spark.table("shared").collect()],
        "lag": [lag.least, lag.mean, lag.most],
        "refused": refused,
    }
    print(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
