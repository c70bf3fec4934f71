"""A streaming query that is a member of a group, as a program of its own, to be killed.

``python member_stream.py BOOTSTRAP TOPIC GROUP FOLDER``: until it is killed. It keeps which offsets came, a file a
micro-batch; a replay takes the place of its file. Where the query fails, since the process that is the member was
killed, it is started again.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from spark_program import short_lived_session


def main(spark, brokers: str, topic: str, group: str, folder: Path) -> None:
    def keep(frame, number):
        rows = [(row.partition, row.offset) for row in frame.select("partition", "offset").collect()]
        (folder / "unfinished").write_text(json.dumps(rows))
        os.replace(folder / "unfinished", folder / "sink" / str(number))

    options = {
        "kafka.bootstrap.servers": brokers,
        "kafka.group.id": group,
        "kafka.session.timeout.ms": "6000",
        "kafka.heartbeat.interval.ms": "1000",
        "subscribe": topic,
        "startingOffsets": "earliest",
        "assignment.mode": "member",
        "numTasks": "1",
        "maxOffsetsPerTrigger": "1000",
    }
    writer = spark.readStream.format("loadwise").options(**options).load().writeStream.foreachBatch(keep)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(processingTime="200 milliseconds")
    while True:
        try:
            writer.start().awaitTermination()
        except StreamingQueryException as error:
            print(str(error).splitlines()[-1], flush=True)


if __name__ == "__main__":
    with short_lived_session() as spark:
        main(spark, *sys.argv[1:4], Path(sys.argv[4]))
