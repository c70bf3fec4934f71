"""The assignment that a group should get: its load, the chosen algorithm, and what happens if one of them fails.

Exceptions of a load source or an algorithm never leave this module. A leader that raised would not send its SyncGroup,
and no member of the group would get a partition.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from loadwise.assignor import rows
from loadwise.assignor.algorithms.sticky import Sticky
from loadwise.assignor.errors import BadAnswerError, BadGroupError
from loadwise.assignor.load.source import LoadSnapshot, LoadSource, TopicLoads
from loadwise.assignor.model import NOBODY, Assignment, Assignor, Floats, GroupSnapshot
from loadwise.assignor.strategy import Strategy
from loadwise.assignor.troubles import Troubles

log = logging.getLogger(__name__)

_SOURCE = "The load source"
_NO_LOAD = "No load"


class Targets:
    """Make the targets of one member while it leads; ``algorithms`` are those of its strategies."""

    def __init__(self, algorithms: Mapping[Strategy, Assignor], load: LoadSource | None) -> None:
        self.algorithms = algorithms
        self.load = load
        self.fallbacks = 0
        """The number of targets without a load: it was missing, stale or invalid, or its source raised."""
        self.failures = 0
        """The number of exceptions: of the load source, the algorithm, or in watching the load."""
        self._troubles = Troubles()

    def of(self, strategy: Strategy, group: GroupSnapshot) -> Assignment:
        """Return the algorithm's assignment. If it fails, return that of `Sticky`, which needs no load."""
        loaded = self._with_load(group) if strategy.traits.load and group.size else group
        culprit = f"The assignor {strategy.name}"
        try:
            target = _checked(self.algorithms[strategy].assign(loaded), loaded)
        except Exception as error:  # noqa: BLE001 (an algorithm may be anybody's, and the group waits for an answer)
            self.failed(culprit, error)
            return Sticky().assign(group)
        self._troubles.over(culprit)
        return target

    def failed(self, culprit: str, error: Exception) -> None:
        """Count an exception; log its traceback if it is the culprit's first since it last worked."""
        self.failures += 1
        if self._troubles.begins(culprit):
            log.error("%s failed; this rebalance continues without it", culprit, exc_info=error)

    def worked(self, culprit: str) -> None:
        """Note that it did not raise this time."""
        self._troubles.over(culprit)

    def _with_load(self, group: GroupSnapshot) -> GroupSnapshot:
        """Return the group with its load. Without a usable load, use one that keeps partitions where they are."""
        try:
            seen = None if self.load is None else self.load.snapshot(group.topics)
            reason = _unusable(seen)
            if seen is not None and reason is None:
                load = rows.loads(seen.load, group.topics, group.topic_start)
                self._troubles.over(_SOURCE)
                if not np.isnan(load).all():
                    self._troubles.over(_NO_LOAD)
                    return replace(group, load=load, load_unit=seen.unit, even_up_to=seen.even_up_to)
                reason = _without_load(seen.load, group.topics)
        except BadGroupError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 (a source may be anybody's, and the group waits for an answer)
            self.failed(_SOURCE, error)
            reason = f"its source raised {error!r}"
        self.fallbacks += 1
        if self._troubles.begins(_NO_LOAD):
            log.warning(
                "No load to assign by (%s): members keep their partitions. Only unowned partitions, and those needed by"
                " members that have none, are distributed, by count",
                reason,
            )
        return replace(group, load=_presumed(group))


def _unusable(seen: LoadSnapshot | None) -> str | None:
    if seen is None:
        return "there is no reading yet"
    if seen.stale:
        return f"the newest is {seen.age_s:.0f} s old, {seen.max_age_s:.0f} s at most"
    return None


def _without_load(load: TopicLoads, topics: Sequence[str]) -> str:
    if not load or any(topic in load for topic in topics):
        return "none of these partitions has been read yet"
    return f"the group reads {_few(topics)}, but the load source has only {_few(load)}"


def _few(topics: Iterable[str]) -> str:
    first, *others = sorted(topics)
    return ", ".join([first, *others[:2]]) + (f" and {len(others) - 2} more" if len(others) > 2 else "")


def _presumed(group: GroupSnapshot) -> Floats | None:
    """float64[P]: loads that make every owner as busy as its capacity; None if no partition has an owner.

    A leader without any load uses these. An earlier leader may have known the loads, so partitions are not moved
    between owners. Partitions without an owner are NaN, which counts as the mean of the others. Members that own
    nothing get a newcomer's share.
    """
    owned = group.owner != NOBODY
    if not owned.any():
        return None
    owner = group.owner[owned]
    load = np.full(group.size, np.nan)
    load[owned] = group.capacity[owner] / np.bincount(owner, minlength=len(group.members))[owner]
    return load


def _checked(answer: Assignment, group: GroupSnapshot) -> Assignment:
    """Return an algorithm's assignment. O(P).

    Raises `BadAnswerError` for one that clients reject, because a partition is given to a member that does not
    subscribe to its topic: kafka-python's consumers would rejoin forever.
    """
    if not isinstance(answer, Assignment):
        raise BadAnswerError(f"the answer is {answer!r}; it must be an Assignment")
    owner = answer.owner
    if owner.shape != (group.size,):
        raise BadAnswerError(f"the answer has owners of shape {owner.shape}; it must have one for each of {group.size}")
    held = np.flatnonzero(owner != NOBODY)
    there = (owner[held] >= 0) & (owner[held] < len(group.members))
    if not there.all():
        name = _name(group, int(held[~there][0]))
        raise BadAnswerError(f"partition {name} is given to a member that does not exist")
    stranger = ~group.subscribed[group.subscription[owner[held]], group.topic_of[held]]
    if stranger.any():
        row = int(held[stranger][0])
        member = group.members[owner[row]]
        raise BadAnswerError(f"partition {_name(group, row)} is given to {member}, which does not subscribe to it")
    return answer


def _name(group: GroupSnapshot, row: int) -> str:
    return "{}-{}".format(*group.name_of(row))
