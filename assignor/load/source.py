"""The interface of load sources: a source is read before a rebalance, never during one.

An assignor runs inside the client's rebalance, on the thread that also sends heartbeats. Any wait delays the whole
group; beyond the session timeout, the group never finishes a rebalance. So a `LoadSource` returns its last reading and
that reading's age.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.model import Floats
from loadwise.assignor.rows import loads_of

TopicLoads: TypeAlias = Mapping[str, Sequence[float | None] | Floats]
"""Topic to the load of each of its partitions: finite, 0 or more; None or NaN where unknown. A list may be short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSnapshot:
    """The newest loads of a source."""

    load: TopicLoads
    """Load of each partition by topic."""
    unit: str
    """The unit of the loads, for tables and logs: ``records``, ``bytes/s``."""
    age_s: float = 0.0
    """Seconds since they were read."""
    max_age_s: float = math.inf
    """The age at which the loads become stale."""
    even_up_to: float = 0.0
    """As of `GroupSnapshot`: a source that knows how its loads shift may ask for equal numbers of partitions."""

    @property
    def stale(self) -> bool:
        """Whether the loads are too old to use."""
        return self.age_s > self.max_age_s


@runtime_checkable
class LoadSource(Protocol):
    """An object that provides loads to an assignor."""

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot | None:
        """Return the newest loads, None before there are any. Returns at once and does no I/O.

        May raise only `BadGroupError`, for invalid loads; the group is then balanced without them.

        ``topics`` are the topics that the group reads. A source may start to read a new one; until then its
        partitions are unknown.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedLoad:
    """Constant loads: known rates, a plan, a test. Raises `BadGroupError` that names the topic of an invalid one."""

    load: TopicLoads
    """Load of each partition by topic."""
    unit: str = "load"
    """The unit of the loads."""

    def __post_init__(self) -> None:
        if not isinstance(self.load, Mapping):
            raise BadGroupError(f"load is {self.load!r}; it must map topics to the loads of their partitions")
        for topic, loads in self.load.items():
            if not isinstance(topic, str):
                raise BadGroupError(f"load has {topic!r}, which is not a topic; it must map topic names to loads")
            loads_of(loads, topic)

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot:  # noqa: ARG002 (the interface's)
        """Return the loads; they never expire."""
        return LoadSnapshot(load=self.load, unit=self.unit)


def of_topics(load: TopicLoads, topics: Collection[str]) -> TopicLoads:
    """Return the loads of these topics only; a source may have topics that the group no longer reads."""
    return {topic: load[topic] for topic in topics if topic in load}
