"""Loads that a function reads now and then: from a database, Prometheus, or a broker's metrics."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeAlias

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.load.background import Background
from loadwise.assignor.load.source import LoadSnapshot, TopicLoads
from loadwise.assignor.rows import loads_of

PolledLoads: TypeAlias = TopicLoads | Mapping[tuple[str, int], float | None]
"""Loads by topic, each a list by partition, or by (topic, partition)."""

STALE_AFTER_READINGS = 6
"""Loads are stale after this many readings in a row that failed."""


class PolledLoad:
    """The newest loads that ``read()`` has returned; a `LoadSource`. A thread calls it, first when a member leads.

    ``read`` returns the load of each partition, in ``unit`` per second: bytes, CPU seconds, rows of a table. It may
    take its time. None keeps the last loads, and so does an exception; the first in a row is a WARNING.
    Raises `BadGroupError` for an ``every_s`` that is no time.
    """

    def __init__(
        self,
        read: Callable[[], PolledLoads | None],
        *,
        every_s: float = 30.0,
        unit: str = "load",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not callable(read):
            raise BadGroupError(f"read is {read!r}; give a function that returns loads by topic")
        if not 0 < every_s < math.inf:
            raise BadGroupError(f"every_s is {every_s!r}; it must be seconds above 0")
        self.every_s = every_s
        """Seconds between two readings."""
        self.unit = unit
        """The unit of the loads, for tables and logs."""
        self._clock = clock
        self._background = Background(partial(_timed, read, clock), name="the load", interval_s=every_s)

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot | None:  # noqa: ARG002 (the interface's)
        """Return the newest loads; None before the first."""
        self._background.begin()
        if (newest := self._background.newest) is None:
            return None
        load, read_at = newest
        age_s, max_age_s = self._clock() - read_at, STALE_AFTER_READINGS * self.every_s
        return LoadSnapshot(load=load, unit=self.unit, age_s=age_s, max_age_s=max_age_s)


def _timed(read: Callable[[], PolledLoads | None], clock: Callable[[], float]) -> tuple[TopicLoads, float] | None:
    loads = read()
    return None if loads is None else (_by_topic(loads), clock())


def _by_topic(loads: PolledLoads) -> TopicLoads:
    """Return the loads as arrays by topic. Raises `BadGroupError` for loads of another form."""
    if not isinstance(loads, Mapping):
        raise BadGroupError(f"read() returned {loads!r}; it must map topics, or (topic, partition), to loads")
    lists: dict[str, Any] = {}
    for key, load in loads.items():
        match key:
            case str():
                lists[key] = load
            case (str(topic), int(number)) if number >= 0:
                of_topic = lists.setdefault(topic, [])
                of_topic += [None] * (number + 1 - len(of_topic))
                of_topic[number] = load
            case _:
                raise BadGroupError(f"read() returned a load for {key!r}, which is no topic and no (topic, partition)")
    return {topic: loads_of(each, topic) for topic, each in lists.items()}
