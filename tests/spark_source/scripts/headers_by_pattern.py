"""The trace id that producers send as a header, of all topics whose name matches."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, explode

brokers, topic, out = sys.argv[1:]
spark = SparkSession.builder.appName("headers").getOrCreate()

df = (
    spark.read.format("kafka")
    .option("kafka.bootstrap.servers", brokers)
    .option("subscribePattern", topic + ".*")
    .option("includeHeaders", "true")
    .option("maxRecordsPerPartition", 25)
    .load()
)
headers = df.select("topic", "partition", "offset", "timestampType", explode("headers").alias("header"))
headers.select("*", "header.key", col("header.value").cast("string").alias("value")).drop("header").write.json(out)
