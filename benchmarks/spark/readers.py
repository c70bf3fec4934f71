"""The readers: this source and Spark's own Kafka source, each with defaults and tuned, on the same topic.

Beside them a Python source that reads nothing: `benchmarks.spark.ready`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OURS, THEIRS, READY = "loadwise", "kafka", "ready"
RECORDS, TASKS, COUNTER = "records", "tasks", "counter"
"""Options of `benchmarks.spark.ready`: the number of records and tasks, and the file with a stream's records."""
MIN_PARTITIONS = 24

TUNED = {
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.poll.records": "20000",
    "kafka.receive.buffer.bytes": str(1 << 20),
}
"""The best settings of the connector: without the first it waits half a second at the end of a range."""


@dataclass(frozen=True, slots=True)
class Reader:
    """One way to read a topic."""

    name: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    """The wanted columns; None for all."""

    def frame(self, spark: Any, options: Mapping[str, str], *, stream: bool = False) -> Any:
        """A DataFrame of the topic that the options name."""
        reader = (spark.readStream if stream else spark.read).format(self.format).options(**options, **self.options)
        return (reader if self.schema is None else reader.schema(self.schema)).load()


def by_hand(slots: int) -> str:
    """The name of our source with the best number of tasks for these topics, and without sampling."""
    return f"{OURS}, numTasks={_at_a_time(slots)}, loadBy=records"


def _at_a_time(slots: int) -> int:
    """Return how many tasks run at a time in a local session: more slots than CPUs share these."""
    return min(slots, os.cpu_count() or slots)


def batch_readers(slots: int, records: int, *, connector: bool) -> list[Reader]:
    """The readers of a batch of this many records, in a session with this many task slots."""
    minimum = {"minPartitions": str(MIN_PARTITIONS)}
    python = [
        Reader(OURS, OURS),
        Reader(by_hand(slots), OURS, {"numTasks": str(_at_a_time(slots)), "loadBy": "records"}),
        # Spark passes the connector the columns of a query, and a Python source only those of .schema().
        Reader(f"{OURS}, value only", OURS, schema="value binary"),
        Reader(READY, READY, {RECORDS: str(records), TASKS: str(_at_a_time(slots))}),
    ]
    theirs = [
        Reader(THEIRS, THEIRS),
        Reader(f"{THEIRS}, tuned", THEIRS, TUNED),
        Reader(f"{THEIRS}, tuned, minPartitions={MIN_PARTITIONS}", THEIRS, TUNED | minimum),
    ]
    return python + (theirs if connector else [])


def stream_readers(slots: int, *, connector: bool) -> list[Reader]:
    """The readers of micro-batches, where more tasks than partitions do not help."""
    everybody = batch_readers(slots, 0, connector=connector)
    return [reader for reader in everybody if "minPartitions" not in reader.options]
