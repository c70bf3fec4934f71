"""Combine lag and rate into one load: what a member must process a second to drain the backlog in time.

To drain all lag within a horizon H, the sum of ``rate + lag / H`` over a member's partitions must stay within its
capacity. So ``rate + lag / H`` is the weight that adds up. The shortest horizon that the whole group can keep is
``H = sum(lag) / (sum(capacity) - sum(rate))``. If the capacity is below the total rate, there is no such horizon, and
the rate alone is shared.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.load.source import LoadSnapshot, LoadSource, TopicLoads, of_topics
from loadwise.assignor.model import RECORDS_PER_S, Floats
from loadwise.assignor.rows import topic_loads


def drain_weight(
    lag: TopicLoads, rate: TopicLoads, capacity: float, *, horizon_s: float | None = None
) -> dict[str, Floats]:
    """Return ``rate + lag / H`` of each partition in records/s by topic, NaN where unknown.

    ``lag`` is in records, ``rate`` in records/s, ``capacity`` that of the whole group in records/s. A value that is
    missing from one of them counts as 0; a partition that is missing from both is unknown. ``horizon_s`` sets H; then
    ``capacity`` is not used. Raises `BadGroupError` unless the horizon is above 0, and for a negative or infinite lag
    or rate.
    """
    size = {t: max(len(each[t]) if t in each else 0 for each in (lag, rate)) for t in sorted(lag.keys() | rate.keys())}
    waiting = {topic: topic_loads(lag, topic, size[topic], "lag") for topic in size}
    coming = {topic: topic_loads(rate, topic, size[topic], "rate") for topic in size}
    if horizon_s is None:
        total_lag = _sum(waiting.values())
        spare = max(capacity - _sum(coming.values()), 0.0)
    elif horizon_s > 0:
        total_lag, spare = horizon_s, 1.0
    else:
        raise BadGroupError(f"horizon_s is {horizon_s}; the time to drain the lag must be above 0 seconds")
    loads: dict[str, Floats] = {}
    for topic in size:
        load = np.nan_to_num(coming[topic], nan=0.0) + _share(waiting[topic], total_lag) * spare
        loads[topic] = np.where(np.isnan(waiting[topic]) & np.isnan(coming[topic]), np.nan, load)
    return loads


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainLoad:
    """A `LoadSource` that combines lag and rate by `drain_weight`.

    ::

        lag = KafkaPythonLag("flights", group_id="billing", bootstrap_servers=...)
        lag.start()
        load = DrainLoad(lag=lag, rate=lag.arrivals, capacity=3000.0)
    """

    lag: LoadSource
    """The lag in records."""
    rate: LoadSource
    """The arrival rate in records/s; until it has a snapshot, the lag alone counts."""
    capacity: float
    """The capacity of the whole group in records/s."""
    horizon_s: float | None = None
    """The time to drain the lag; None: the shortest that ``capacity`` allows."""

    def __post_init__(self) -> None:
        if not (self.capacity > 0 and math.isfinite(self.capacity)):
            raise BadGroupError(f"the capacity of the group must be a finite number above 0, not {self.capacity}")
        if self.horizon_s is not None and not self.horizon_s > 0:
            raise BadGroupError(f"horizon_s is {self.horizon_s}; the time to drain the lag must be above 0 seconds")

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot | None:
        """Return the newest loads, with the age of the lag; None before the first lag."""
        lag, rate = self.lag.snapshot(topics), self.rate.snapshot(topics)
        if lag is None:
            return None
        waiting = of_topics(lag.load, topics)
        coming = {} if rate is None or rate.stale else of_topics(rate.load, topics)
        return LoadSnapshot(
            load=drain_weight(waiting, coming, self.capacity, horizon_s=self.horizon_s),
            unit=RECORDS_PER_S,
            age_s=lag.age_s,
            max_age_s=lag.max_age_s,
        )


def _share(waiting: Floats, total: float) -> Floats:
    # This order of operations does not overflow, however small the total is.
    return np.nan_to_num(waiting, nan=0.0) / total if total > 0 else np.zeros(len(waiting))


def _sum(rows: Iterable[Floats]) -> float:
    """Sum the known values, independent of their order."""
    return math.fsum(value for row in rows for value in row[~np.isnan(row)].tolist())
