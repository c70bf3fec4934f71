"""The load of one consumer group, and when it justifies new targets.

Decides like the leader of a classic group (`loadwise.assignor.leader`), from the coordinator's own logs and commits. It
needs numpy, so it is imported when the first group uses load.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.events import Asked, Assigned, PriorEnds, Rebalancing
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.watch import GroupWatch
from loadwise.assignor.model import Assignment, Floats, GroupSnapshot, Member
from loadwise.coordinator.groups.topic_view import LoadView

_HISTORY_MS = 60_000
"""Before the first reading, the log's ends are read for this long ago."""
_FRESH_MS = 1000
"""A younger reading is used again for new targets, because many members may join in a row."""


class LoadWatch:
    """The load of one group. It is not in the journal, and is lost with the coordinator.

    ``live`` as in `loadwise.coordinator.groups.consumer.limits.ConsumerGroupLimits`.
    """

    def __init__(self, group_id: str, loads: LoadView, assignor: str, live: LiveSettings | bool) -> None:
        self.acts = live is not False
        """Whether the load alone may trigger new targets."""
        self.assignor = assignor
        """The name of the watched algorithm."""
        self._group_id = group_id
        self._loads = loads
        settings = LiveSettings() if isinstance(live, bool) else live
        self._watch = GroupWatch(settings, algorithm(assignor), cooperative=True)
        self._targets_made_ms = 0
        self._told_too_small = False

    @property
    def watches(self) -> bool:
        """Return whether the members have reached their targets and are watched."""
        return self._watch.knowledge.leads

    def read(self, names: Iterable[str], now_ms: int) -> None:
        """Read the logs of these topics and the group's commits. O(partitions)."""
        watch, topics = self._watch, list(names)
        if watch.knowledge.read_at_ms is None:
            at_ms = now_ms - _HISTORY_MS
            watch.handle(PriorEnds(at_ms=at_ms, ends=self._loads.ends_before(topics, at_ms)))
        elif now_ms - watch.knowledge.read_at_ms < _FRESH_MS:
            return
        watch.read(self._loads.positions(self._group_id, topics, now_ms), now_ms)

    def demand(self) -> dict[str, Floats]:
        """Return each topic's demand by partition in records/s, NaN if unknown."""
        return self._watch.loads()

    def even_up_to(self, now_ms: int) -> float:
        """Return the utilisation up to which equal numbers of partitions come before equal loads."""
        return self._watch.even_up_to(now_ms) if self.acts else math.inf

    def with_capacities(self, members: Sequence[Member], now_ms: int) -> list[Member]:
        """Return the members with their known capacities."""
        return self._watch.knowledge.capacities(members, dict.fromkeys((member.id for member in members), 0.0), now_ms)

    def targets_made(self, now_ms: int) -> None:
        """Stop judging until the members have reached new targets."""
        self._watch.handle(Rebalancing(at_ms=now_ms))
        self._targets_made_ms = now_ms

    def settled(self, group: GroupSnapshot, epoch: int, now_ms: int) -> None:
        """Note that all members have reached their targets, which ``group`` contains. O(partitions)."""
        self._watch.handle(
            Assigned(
                at_ms=now_ms,
                target=Assignment(group=group, owner=group.owner),
                generation=epoch,
                duration_ms=now_ms - self._targets_made_ms if self._targets_made_ms else 0,
            )
        )

    def decide(self, now_ms: int) -> Decision | None:
        """Judge the newest reading; None if there is nothing to judge."""
        return self._watch.decide(now_ms)

    def act(self, decision: Decision) -> bool:
        """Return whether a decision triggers new targets, and record that it does."""
        if not (decision.ask and self.acts):
            return False
        self._watch.handle(Asked(at_ms=decision.now_ms))
        return not decision.settings.dry_run

    def note(self, decision: Decision) -> str | None:
        """Return what to log about a decision without new targets; None for nothing."""
        if decision.ask and decision.settings.dry_run and self.acts:
            return f"dry run: {decision}"
        told, self._told_too_small = self._told_too_small, bool(decision.missing)
        if decision.missing and not told:
            return decision.too_small
        return str(decision) if decision.exhausted and self.acts else None
