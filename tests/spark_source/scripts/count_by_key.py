"""How many clicks there are of each user: a batch over everything in the topic."""

import sys

from pyspark.sql import SparkSession

brokers, topic, out = sys.argv[1:]
spark = SparkSession.builder.appName("count by key").getOrCreate()

clicks = (
    spark.read.format("kafka")
    .option("kafka.bootstrap.servers", brokers)
    .option("subscribe", topic)
    .option("minPartitions", 6)
    .option("kafka.fetch.max.wait.ms", 100)
    .load()
)
counts = clicks.selectExpr("CAST(key AS STRING) AS user", "length(value) AS size").groupBy("user")
counts.agg({"size": "sum", "*": "count"}).write.json(out)
