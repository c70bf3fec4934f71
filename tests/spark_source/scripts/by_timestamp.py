"""One hour of the topic."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, date_trunc

brokers, topic, out = sys.argv[1:]
spark = SparkSession.builder.appName("one hour").getOrCreate()

df = (
    spark.read.format("kafka")
    .option("kafka.bootstrap.servers", brokers)
    .option("subscribe", topic)
    .option("startingTimestamp", 1_700_003_600_000)
    .option("endingTimestamp", 1_700_007_200_000)
    .option("startingOffsetsByTimestampStrategy", "latest")
    .load()
)
minutes = df.groupBy(date_trunc("minute", col("timestamp")).alias("minute"), "partition")
minutes.count().write.json(out)
