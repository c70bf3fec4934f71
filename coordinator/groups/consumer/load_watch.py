"""The load of one consumer group: what its targets go by, and when other targets are worth their price.

The same decision as that of a member that leads a classic group (`loadwise.assignor.leader`), from the coordinator's
own logs and commits. It needs numpy: the module is imported when the first group goes by load.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zlib import crc32

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.watch import GroupWatch
from loadwise.assignor.model import Assignment, Floats, GroupSnapshot, Member
from loadwise.coordinator.groups.topic_view import LoadView

_HISTORY_MS = 60_000
"""Before the first reading the log is asked where its partitions ended so long ago."""
_FRESH_MS = 1000
"""A younger reading is not repeated for new targets: many members may come one after the other."""


class LoadWatch:
    """What is known of the load of one group, lost with the coordinator: it is not in the journal.

    ``live`` as in `loadwise.coordinator.groups.consumer.limits.ConsumerGroupLimits`.
    """

    def __init__(self, group_id: str, loads: LoadView, assignor: str, live: LiveSettings | bool) -> None:
        self.acts = live is not False
        """Whether other targets may be made because of the load."""
        self.assignor = assignor
        """The name of the algorithm whose targets are watched."""
        self._group_id = group_id
        self._loads = loads
        settings = LiveSettings() if isinstance(live, bool) else live
        jitter = crc32(group_id.encode()) / 2**32  # groups that see the same shift do not all act at one moment
        self._watch = GroupWatch(settings, algorithm(assignor), cooperative=True, jitter=jitter)
        self._targets_made_ms = 0
        self._told_too_small = False

    @property
    def watches(self) -> bool:
        """Whether the members have what they should have, and that is watched."""
        return self._watch.leads

    def read(self, names: Iterable[str], now_ms: int) -> None:
        """Look at the logs of these topics and at what the group has committed. O(partitions)."""
        watch, topics = self._watch, list(names)
        if watch.read_at_ms is None:
            at_ms = now_ms - _HISTORY_MS
            watch.prior(self._loads.ends_before(topics, at_ms), at_ms)
        elif now_ms - watch.read_at_ms < _FRESH_MS:
            return
        watch.read(self._loads.positions(self._group_id, topics, now_ms), now_ms)

    def demand(self) -> dict[str, Floats]:
        """Topic name to the demand of each partition in records/s, NaN where it is unknown."""
        return self._watch.loads()

    def with_capacities(self, members: Sequence[Member], now_ms: int) -> list[Member]:
        """The members with what is known of their capacities."""
        return self._watch.capacities(members, dict.fromkeys((member.id for member in members), 0.0), now_ms)

    def targets_made(self, now_ms: int) -> None:
        """New targets were made, which the members move to: until they have, there is nothing to judge."""
        self._watch.unwatch()
        self._targets_made_ms = now_ms

    def settled(self, group: GroupSnapshot, epoch: int, now_ms: int) -> None:
        """All members have what they should have, which is what they own in ``group``. O(partitions)."""
        self._watch.assigned(
            Assignment(group=group, owner=group.owner),
            {},
            generation=epoch,
            now_ms=now_ms,
            duration_ms=now_ms - self._targets_made_ms if self._targets_made_ms else 0,
        )

    def decide(self, now_ms: int) -> Decision | None:
        """Judge the newest reading; None where there is nothing to judge."""
        return self._watch.decide(now_ms)

    def act(self, decision: Decision) -> bool:
        """Whether new targets are to be made because of a decision; it counts as one that was acted on."""
        if not (decision.ask and self.acts):
            return False
        self._watch.asked(decision)
        return not decision.settings.dry_run

    def note(self, decision: Decision) -> str | None:
        """What an operator should hear of a decision that makes no new targets; None for nothing."""
        if decision.ask and decision.settings.dry_run and self.acts:
            return f"dry run: {decision}"
        told, self._told_too_small = self._told_too_small, bool(decision.missing)
        if decision.missing and not told:
            return decision.too_small
        return str(decision) if decision.exhausted and self.acts else None
