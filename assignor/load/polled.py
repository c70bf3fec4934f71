"""Loads that a function reads now and then: from a database, Prometheus, or a broker's metrics."""

from __future__ import annotations

import inspect
import operator
import threading
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeAlias

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.load.background import Background
from loadwise.assignor.load.source import LoadSnapshot, TopicLoads
from loadwise.assignor.model import Floats
from loadwise.assignor.rows import loads_of

PolledLoads: TypeAlias = TopicLoads | Mapping[tuple[str, int], float | None]
"""Loads by topic, each a list by partition, or by (topic, partition)."""

STALE_AFTER_READINGS = 6
"""Loads are stale after this many readings in a row that failed."""
_MOST_PARTITIONS = 1_000_000
"""Numbers of partitions are below this: a larger one is of another column."""


class PolledLoad:
    """The latest loads that ``read()`` has returned; a `LoadSource`. A thread calls it as long as this object exists.

    ``read`` returns the load of each partition, in ``unit`` per second: bytes, CPU seconds, rows of a table. It may
    block. If it returns None or raises, the last loads are kept; the first failure in a row is a WARNING.
    Raises `BadGroupError` if ``every_s`` is not a valid time.
    """

    def __init__(
        self,
        read: Callable[[], PolledLoads | None],
        *,
        every_s: float = 30.0,
        unit: str = "load",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        given: object = read
        if not callable(given) or inspect.iscoroutinefunction(given):
            raise BadGroupError(f"read is {read!r}; give a function, not an async one, that returns loads by topic")
        seconds: object = every_s
        if not (isinstance(seconds, int | float) and 0 < seconds <= threading.TIMEOUT_MAX):
            raise BadGroupError(f"every_s is {every_s!r}; it must be a number of seconds above 0")
        self.every_s = every_s
        """Seconds between two readings."""
        self.unit = unit
        """The unit of the loads, for tables and logs."""
        self._clock = clock
        self._background = Background(partial(_timed, read, clock), name="the load", interval_s=every_s)

    def begin(self) -> None:
        """Begin to read, before the first snapshot."""
        self._background.begin()

    def newest(self) -> Mapping[str, Floats] | None:
        """Return the newest loads by topic, the same object until there are newer ones; None before the first."""
        self.begin()
        return None if (read := self._background.newest) is None else read[0]

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot | None:  # noqa: ARG002 (the interface's)
        """Return the newest loads; None before the first."""
        self.begin()
        if (read := self._background.newest) is None:
            return None
        load, read_at = read
        age_s, max_age_s = self._clock() - read_at, STALE_AFTER_READINGS * self.every_s
        return LoadSnapshot(load=load, unit=self.unit, age_s=age_s, max_age_s=max_age_s)


def _timed(
    read: Callable[[], PolledLoads | None], clock: Callable[[], float]
) -> tuple[Mapping[str, Floats], float] | None:
    loads = read()
    return None if loads is None else (_by_topic(loads), clock())


def _by_topic(loads: PolledLoads) -> Mapping[str, Floats]:
    """Return the loads as arrays by topic. Raises `BadGroupError` for loads of another form."""
    if not isinstance(loads, Mapping):
        raise BadGroupError(f"read() returned {loads!r}; it must map topics, or (topic, partition), to loads")
    lists: dict[str, Any] = {}
    for key, load in loads.items():
        if isinstance(key, str):
            lists[key] = load
            continue
        topic, number = _partition(key)
        of_topic = lists.setdefault(topic, {})
        if not isinstance(of_topic, dict):
            raise BadGroupError(f"read() returned loads of {topic} twice: by topic, and by (topic, partition)")
        of_topic[number] = load
    return {topic: loads_of(_listed(each) if isinstance(each, dict) else each, topic) for topic, each in lists.items()}


def _partition(key: Any) -> tuple[str, int]:
    try:
        topic, number = key
        number = operator.index(number)
    except (TypeError, ValueError):
        topic, number = None, -1
    if not isinstance(topic, str) or not 0 <= number < _MOST_PARTITIONS:
        raise BadGroupError(f"read() returned a load for {key!r}, which is neither a topic nor a (topic, partition)")
    return topic, number


def _listed(of_topic: Mapping[int, float | None]) -> list[float | None]:
    return [of_topic.get(number) for number in range(max(of_topic) + 1)]
