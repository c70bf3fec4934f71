"""Whatever is new in the topic as Parquet, started by a scheduler every now and then."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json

brokers, topic, out = sys.argv[1:]
spark = SparkSession.builder.appName("to parquet").getOrCreate()

raw = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", brokers)
    .option("kafka.client.id", "to-parquet")
    .option("groupIdPrefix", "to-parquet")
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", 60)
    .load()
)
parsed = raw.select(
    "partition",
    "offset",
    "timestamp",
    col("key").cast("string").alias("user"),
    from_json(col("value").cast("string"), "page STRING, ms INT").alias("click"),
)
query = (
    parsed.select("*", "click.*")
    .drop("click")
    .writeStream.format("parquet")
    .option("path", out)
    .option("checkpointLocation", out + "-checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
