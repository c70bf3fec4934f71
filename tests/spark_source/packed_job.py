"""A job for ``spark-submit``: reads a topic, and says for each task where its executor has Python and packages from.

``packed_job.py BOOTSTRAP TOPIC TASKS ANSWER``: writes the answer as JSON to that file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def places(rows):
    import os

    import aiokafka
    import confluent_kafka
    import cramjam
    import crc32c
    import numpy
    import pyarrow

    import loadwise

    found = [(row.partition, row.offset) for row in rows]
    modules = [module.__file__ for module in (aiokafka, confluent_kafka, crc32c, cramjam, loadwise, numpy, pyarrow)]
    yield {"folder": os.getcwd(), "python": sys.executable, "modules": modules, "read": found}


def main(brokers: str, topic: str, tasks: str, answer: Path) -> None:
    spark = SparkSession.builder.getOrCreate()
    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic, "numTasks": tasks}
    frame = spark.read.format("loadwise").options(**options).load().select("partition", "offset")
    found = {"tasks": frame.rdd.mapPartitions(places).collect()}
    del options["numTasks"]
    costly = spark.read.format("loadwise").options(**options, costPerRecord=json.dumps({topic: 1000})).load()
    found["by default"] = costly.rdd.getNumPartitions()
    answer.write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
