"""Name options without effect and the reason, for a warning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

STREAMING_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
"""Options without a meaning in a batch query: a warning names them, as Spark's Kafka integration does."""

_OF_STREAMS = (*STREAMING_ONLY, "commitGroup", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs")
_OF_PLANS = ("assignor", "costPerRecord", "loadBy", "maxRecordsPerPartition", "minPartitions", "numTasks", "split")
"""Options that shape a plan. They mean nothing if the followed group's assignment is the plan."""
_RANKED = (
    ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"),
    ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets"),
    ("numTasks", "minPartitions"),
)
"""Options of which only the first given one counts."""


def ignored(
    options: Mapping[str, str],
    *,
    streaming: bool,
    follow: bool,
    group_id: str | None,
    costs: Iterable[str],
    reads: Callable[[str], bool],
) -> Iterator[str]:
    """Name options without effect. ``costs`` are the topics of ``costPerRecord``; ``reads`` is whether one is read."""
    if not streaming:
        yield from (f"{name} (means nothing in a batch query)" for name in _OF_STREAMS if name in options)
    if follow:
        yield from (f"{name} (the plan is that of the group followed)" for name in _OF_PLANS if name in options)
    for ranked in _RANKED:
        first, *others = [name for name in ranked if name in options] or [""]
        yield from (f"{name} ({first} goes before it)" for name in others)
    if "startingOffsetsByTimestampStrategy" in options and not {*_RANKED[0][:2]} & options.keys():
        yield "startingOffsetsByTimestampStrategy (no timestamp is given to start at)"
    yield from (f"costPerRecord of {topic} (the query does not read it)" for topic in costs if not reads(topic))
    if "groupIdPrefix" in options and group_id:
        yield "groupIdPrefix (kafka.group.id is given)"
