"""A streaming query as a program of its own, to be killed: keeps what it reads in files, a file a micro-batch.

``python counted_stream.py BOOTSTRAP TOPIC FOLDER [STALL]``: until it is killed. The micro-batch number STALL is read
and never finished. A replayed micro-batch takes the place of its file, which makes the sink exact; what a file says is
which offsets came, so that a loss or a double shows.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from threading import Event

from pyspark.errors import StreamingQueryException
from spark_program import short_lived_session


def main(spark, brokers: str, topic: str, folder: Path, stall: int = -1) -> None:
    def keep(frame, number):
        rows = [(row.partition, row.offset) for row in frame.select("partition", "offset").collect()]
        unfinished = folder / "unfinished" / str(number)
        unfinished.with_suffix(".json").write_text(json.dumps(rows))
        os.replace(unfinished.with_suffix(".json"), unfinished)
        if number == stall:
            Event().wait()
        os.replace(unfinished, folder / "sink" / str(number))

    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic, "numTasks": "2", "maxOffsetsPerTrigger": "2000"}
    writer = spark.readStream.format("loadwise").options(**options).load().writeStream.foreachBatch(keep)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(processingTime="0 seconds")
    # Spark gives a Python process that it starts 10 s to connect back, which no option changes, and a machine that has
    # much else to do may take longer. Whoever runs a query in earnest starts it again, too.
    while True:
        try:
            writer.start().awaitTermination()
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error):
                raise


if __name__ == "__main__":
    with short_lived_session() as spark:
        main(spark, sys.argv[1], sys.argv[2], Path(sys.argv[3]), *map(int, sys.argv[4:]))
