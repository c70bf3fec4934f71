"""Where the load of partitions comes from: a source is read before a rebalance, never by one.

An assignor runs inside the client's rebalance, on the thread that also sends heartbeats: whatever it waits for delays
the whole group, and beyond the session timeout the group rebalances for ever. So a `LoadSource` hands out what it last
saw and tells how old that is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from loadwise.assignor.model import Floats

TopicLoads: TypeAlias = Mapping[str, Sequence[float | None] | Floats]
"""Topic to the load of each of its partitions: finite, 0 or more; None or NaN where unknown. A list may be short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSnapshot:
    """The loads that a source saw last."""

    load: TopicLoads
    """Load of each partition."""
    unit: str
    """What the loads count, for tables and logs: ``records``, ``bytes/s``."""
    age_s: float = 0.0
    """How long ago they were read, in seconds."""
    max_age_s: float = math.inf
    """The age from which on the source would rather not be believed."""

    @property
    def stale(self) -> bool:
        """Whether the loads are too old to be used."""
        return self.age_s > self.max_age_s


@runtime_checkable
class LoadSource(Protocol):
    """What an assignor asks for loads."""

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot | None:
        """Answer the newest loads, None before there are any. Returns at once, does no I/O.

        Raises nothing but `BadGroupError`, for loads that cannot be: the group is then balanced without them.

        ``topics`` is what the group reads. A source that did not know of one of them may read it from now on; until
        then its partitions are unknown.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedLoad:
    """Loads that do not change: known rates, a plan, a test."""

    load: TopicLoads
    """Load of each partition."""
    unit: str = "load"
    """What the loads count."""

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot:  # noqa: ARG002 (the interface's)
        """Answer the loads; they are never old."""
        return LoadSnapshot(load=self.load, unit=self.unit)


def of_topics(load: TopicLoads, topics: Collection[str]) -> TopicLoads:
    """The loads of these topics; a source may know others, which the group reads no more."""
    return {topic: load[topic] for topic in topics if topic in load}
