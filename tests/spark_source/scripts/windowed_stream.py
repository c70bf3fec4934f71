"""Clicks of each page in each ten minutes, with a watermark, brought into a table by foreachBatch."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, get_json_object, window

brokers, topic, out = sys.argv[1:]
spark = SparkSession.builder.appName("windows").getOrCreate()

clicks = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", brokers)
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .option("failOnDataLoss", "true")
    .load()
)
windows = (
    clicks.withWatermark("timestamp", "10 minutes")
    .groupBy(window("timestamp", "10 minutes"), get_json_object(col("value").cast("string"), "$.page").alias("page"))
    .agg(count("*").alias("clicks"))
)


def upsert(closed, batch_id):
    closed.select("window.start", "page", "clicks").write.mode("append").json(out)


query = (
    windows.writeStream.outputMode("append")
    .foreachBatch(upsert)
    .option("checkpointLocation", out + "-checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
