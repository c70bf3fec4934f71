"""Lag and rate as one load: what a member must do a second so that the group drains its backlog together.

To drain all lag within a horizon H, every member needs the sum of ``rate + lag / H`` over its partitions to stay within
its capacity. So ``rate + lag / H`` is the one weight that adds up, and the shortest horizon that the group as a whole
can keep is ``H = sum(lag) / (sum(capacity) - sum(rate))``. Where capacity does not even suffice for the rate, no
horizon does, and the rate alone is to be shared fairly.
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
    """Load of each partition in records/s, topic to float64[partitions]: ``rate + lag / H``, NaN where unknown.

    ``lag`` in records, ``rate`` in records/s, ``capacity`` the whole group's in records/s; what is unknown or left out
    of one of them counts as 0 there, and a partition that neither knows has no known load. ``horizon_s`` is H where it
    is given; then ``capacity`` is not looked at. Raises `BadGroupError` for a horizon that is not above 0, and for a
    lag or a rate that is negative or infinite.
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
        raise BadGroupError(f"horizon_s is {horizon_s}; the time to drain the lag in must be above 0 seconds")
    loads: dict[str, Floats] = {}
    for topic in size:
        load = np.nan_to_num(coming[topic], nan=0.0) + _share(waiting[topic], total_lag) * spare
        loads[topic] = np.where(np.isnan(waiting[topic]) & np.isnan(coming[topic]), np.nan, load)
    return loads


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainLoad:
    """Lag and rate of two sources as one load, by `drain_weight`; a `LoadSource`.

    ::

        lag = KafkaPythonLag("flights", group_id="billing", bootstrap_servers=...)
        lag.start()
        load = DrainLoad(lag=lag, rate=lag.arrivals, capacity=3000.0)
    """

    lag: LoadSource
    """Records that wait."""
    rate: LoadSource
    """Records a second that arrive; until this has any, the lag alone counts."""
    capacity: float
    """What the whole group can process, in records/s."""
    horizon_s: float | None = None
    """The time to drain the lag in; None: the shortest that ``capacity`` allows."""

    def __post_init__(self) -> None:
        if not (self.capacity > 0 and math.isfinite(self.capacity)):
            raise BadGroupError(f"the capacity of the group must be a finite number above 0, not {self.capacity}")
        if self.horizon_s is not None and not self.horizon_s > 0:
            raise BadGroupError(f"horizon_s is {self.horizon_s}; the time to drain the lag in must be above 0 seconds")

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot | None:
        """Answer the newest loads, as old as the lag is; None before there is any lag."""
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
    # In this order of operations nothing overflows, however small the total is.
    return np.nan_to_num(waiting, nan=0.0) / total if total > 0 else np.zeros(len(waiting))


def _sum(rows: Iterable[Floats]) -> float:
    """The sum of what is known, the same in whatever order it comes."""
    return math.fsum(value for row in rows for value in row[~np.isnan(row)].tolist())
