"""A load source for the table of partitions and hours that ``loadwise loads`` writes.

::

    topic string, partition int, hour timestamp, records long, bytes long, keys long,
    hot list<struct<key: binary, records: long, bytes: long>>, partitions int

A row holds what one run counted in a partition within an hour. Rows of the same partition and hour add up, except
``keys``, the number of distinct keys that the run counted. ``hot`` has the keys with the most bytes. Records without a
key count in neither. ``partitions`` is the topic's number of partitions if known; empty partitions have no row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.load.source import LoadSnapshot, TopicLoads, of_topics
from loadwise.installation import pip_install

MEASURES = ("bytes", "records")
"""Columns that a load can be read from."""
MOST_PARTITIONS = 1_000_000
"""Limit for one topic: a wrong partition number must not exhaust memory."""


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key with a large part of a topic's load."""

    key: bytes
    partition: int
    """The partition of its records."""
    load: float
    """Its bytes or records over all hours."""


@dataclass(frozen=True, slots=True)
class Hour:
    """One topic's load in one hour."""

    begins: datetime
    load: tuple[float, ...]
    """Bytes or records of each partition."""
    hottest: HotKey | None
    """The key with the most load in this hour; None if no record had a key."""


@dataclass(frozen=True, slots=True)
class TopicHistory:
    """One topic's load over all hours of a table."""

    topic: str
    load: tuple[float, ...]
    """Bytes or records of each partition over all hours."""
    hours: int
    """The number of distinct hours."""
    hot: tuple[HotKey, ...]
    """The keys with the most load, in descending order."""
    by_hour: tuple[Hour, ...] = ()
    """Each hour with any load, in order; empty if no hot keys were requested."""


@dataclass(frozen=True, slots=True)
class HistoryLoad:
    """The mean hourly load of each partition in a table of ``loadwise loads``; a `LoadSource`.

    ::

        load = HistoryLoad("loads.parquet")
        consumer = kafka_python_consumer("flights", group_id="billing", assignor="weighted", load=load, ...)

    For groups without a live load: the snapshot never changes and never expires. The table is read once, in the
    constructor. Raises `BadGroupError` if the table cannot be read or pyarrow is missing (extra ``spark``).
    """

    path: str | Path
    """The Parquet file or the folder that Spark wrote."""
    by: str = "bytes"
    """``bytes`` or ``records``."""
    _load: TopicLoads = field(init=False, repr=False)

    def __post_init__(self) -> None:
        known = {each.topic: np.array(each.load) / each.hours for each in history(self.path, by=self.by, hot=0)}
        object.__setattr__(self, "_load", known)

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot:
        """Return the loads of these topics; they never expire."""
        return LoadSnapshot(load=of_topics(self._load, topics), unit=f"{self.by}/h")


def history(path: str | Path, *, by: str = "bytes", hot: int = 20) -> list[TopicHistory]:
    """Read each topic of a table, by name, with its ``hot`` hottest keys. Raises as `HistoryLoad` does."""
    if by not in MEASURES:
        raise BadGroupError(f"by is {by!r}; expected {' or '.join(MEASURES)}")
    table = _table(path, ["topic", "partition", "hour", by, *(["hot"] if hot else [])], may_miss=["partitions"])
    sums = table.group_by(["topic", "partition"]).aggregate([(by, "sum")])
    found: dict[str, dict[int, float]] = {}
    for row in sums.to_pylist():
        _check(row["topic"], row["partition"], row[f"{by}_sum"], path)
        found.setdefault(row["topic"], {})[row["partition"]] = float(row[f"{by}_sum"])
    hours = {row["topic"]: row["hour_count_distinct"] for row in _distinct_hours(table, path)}
    keys = _hot_keys(table, by) if hot else {}
    counts = _counts(table, path)
    sizes = {topic: max(max(loads) + 1, counts.get(topic, 0)) for topic, loads in found.items()}
    by_hour = _by_hour(table, by, sizes) if hot else {}
    return [
        TopicHistory(
            topic,
            tuple(loads.get(number, 0.0) for number in range(sizes[topic])),
            hours[topic],
            tuple(sorted(keys.get(topic, ()), key=lambda each: (-each.load, each.key, each.partition))[:hot]),
            by_hour.get(topic, ()),
        )
        for topic, loads in sorted(found.items())
    ]


def _distinct_hours(table: Any, path: str | Path) -> list[dict[str, Any]]:
    if table.column("hour").null_count:
        raise BadGroupError(f"{path} has a row without an hour; every row needs one")
    rows: list[dict[str, Any]] = table.group_by("topic").aggregate([("hour", "count_distinct")]).to_pylist()
    return rows


def _counts(table: Any, path: str | Path) -> dict[str, int]:
    """Return the number of partitions of each topic, where the table has it."""
    if "partitions" not in table.column_names:
        return {}
    rows = table.group_by("topic").aggregate([("partitions", "max")]).to_pylist()
    counts = {row["topic"]: row["partitions_max"] for row in rows if row["partitions_max"] is not None}
    for topic, count in counts.items():
        if not isinstance(count, int) or not 0 <= count <= MOST_PARTITIONS:
            raise BadGroupError(f"{path}: topic {topic!r} has {count!r} partitions; expected a positive whole number")
    return counts


def _hot_keys(table: Any, by: str) -> dict[str, list[HotKey]]:
    """Return the hot keys of each topic with their load over the hours where they were hot."""
    sums = _keys(table, by).group_by(["topic", "partition", "key"]).aggregate([("load", "sum")])
    found: dict[str, list[HotKey]] = {}
    for row in sums.to_pylist():
        found.setdefault(row["topic"], []).append(HotKey(row["key"], row["partition"], float(row["load_sum"])))
    return found


def _by_hour(table: Any, by: str, sizes: Mapping[str, int]) -> dict[str, tuple[Hour, ...]]:
    """Return each topic hour by hour; ``sizes`` are the numbers of partitions."""
    loads: dict[tuple[str, datetime], list[float]] = {}
    for row in table.group_by(["topic", "hour", "partition"]).aggregate([(by, "sum")]).to_pylist():
        load = loads.setdefault((row["topic"], row["hour"]), [0.0] * sizes[row["topic"]])
        load[row["partition"]] = float(row[f"{by}_sum"])
    hottest: dict[tuple[str, datetime], HotKey] = {}
    sums = _keys(table, by).group_by(["topic", "hour", "partition", "key"]).aggregate([("load", "sum")])
    for row in sums.to_pylist():
        here, key = (row["topic"], row["hour"]), HotKey(row["key"], row["partition"], float(row["load_sum"]))
        known = hottest.get(here)
        if known is None or (-key.load, key.key) < (-known.load, known.key):
            hottest[here] = key
    found: dict[str, list[Hour]] = {}
    for (topic, begins), load in sorted(loads.items()):
        found.setdefault(topic, []).append(Hour(begins, tuple(load), hottest.get((topic, begins))))
    return {topic: tuple(hours) for topic, hours in found.items()}


def _keys(table: Any, by: str) -> Any:
    """Return the hot keys of all rows as a table of topic, hour, partition, key and load."""
    import pyarrow as pa  # noqa: PLC0415 - see _table
    import pyarrow.compute as pc  # noqa: PLC0415 - see _table

    hot = table.column("hot").combine_chunks()
    rows, each = pc.list_parent_indices(hot), pc.list_flatten(hot)
    columns = [table.column(name).take(rows) for name in ("topic", "hour", "partition")]
    names = ["topic", "hour", "partition", "key", "load"]
    return pa.table([*columns, each.field("key"), each.field(by)], names=names)


def _table(path: str | Path, columns: list[str], *, may_miss: list[str]) -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional: groups are balanced without it
        import pyarrow.parquet as pq  # noqa: PLC0415 - see above
    except ImportError as error:
        raise BadGroupError(
            f"reading {path} needs pyarrow, which is not installed; get it with: {pip_install('spark')}"
        ) from error
    try:
        written = pq.ParquetDataset(path)
        table = written.read(columns=[name for name in (*columns, *may_miss) if name in written.schema.names])
    except (OSError, pa.ArrowException) as error:
        raise BadGroupError(f"{path} cannot be read as Parquet: {error}") from error
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise BadGroupError(f"{path} has no column {', '.join(missing)}; expected a table written by `loadwise loads`")
    return table


def _check(topic: object, partition: object, load: object, path: str | Path) -> None:
    if not isinstance(topic, str) or not isinstance(partition, int) or not 0 <= partition < MOST_PARTITIONS:
        raise BadGroupError(f"{path} has a row of topic {topic!r} and partition {partition!r}; both must be set")
    if not isinstance(load, int | float) or not 0 <= load < float("inf"):
        raise BadGroupError(f"{path}: the load of {topic}-{partition} is {load!r}; it must be 0 or more")
