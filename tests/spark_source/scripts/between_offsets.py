"""A part of the topic again, by offsets: -2 is the earliest, -1 the latest."""

import json
import sys

from pyspark.sql import SparkSession

brokers, topic, out = sys.argv[1:]
spark = SparkSession.builder.appName("between offsets").getOrCreate()

df = (
    spark.read.format("kafka")
    .option("kafka.bootstrap.servers", brokers)
    .option("subscribe", topic)
    .option("startingOffsets", json.dumps({topic: {"0": 7, "1": -2, "2": 3}}))
    .option("endingOffsets", json.dumps({topic: {"0": 31, "1": 12, "2": -1}}))
    .option("failOnDataLoss", "false")
    .load()
)
df.write.parquet(out)
