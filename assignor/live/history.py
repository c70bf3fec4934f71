"""The latest events of a group's leader, so that its decisions can be replayed: a bug report becomes a test."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field

from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.events import Event, Events, Read
from loadwise.assignor.live.watch import GroupWatch

_MOST_READINGS, _MOST_BYTES = 200, 8_000_000
_PER_PARTITION = 500  # about the bytes of a watch for each partition


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class History:
    """The newest events of a group's watch, and its decisions after them."""

    start: GroupWatch | None
    """The watch before the first event; None before any event, and if the group is too large to record."""
    events: Events = ()
    decisions: tuple[Decision, ...] = ()


def replay(history: History) -> Iterator[Decision]:
    """Yield the decisions of a history, made again from its events."""
    watch = copy.deepcopy(history.start)
    if watch is None:
        return
    for event in history.events:
        decision = watch.handle(event)
        if decision is not None:
            yield decision


@dataclass(slots=True)
class _Part:
    start: GroupWatch
    events: list[Event] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    readings: int = 0
    size: int = 0


class Recorder:
    """Passes events to a watch and keeps them in two parts: when the newer one is full, the older one is dropped."""

    def __init__(self, watch: GroupWatch) -> None:
        self.watch = watch
        self._parts: tuple[_Part, ...] = ()

    def handle(self, event: Event) -> Decision | None:
        """Pass an event to the watch; return its decision."""
        part = self._part()
        if part is not None:
            part.events.append(event)
            if isinstance(event, Read):
                part.readings += 1
                part.size += event.positions.nbytes
        decision = self.watch.handle(event)
        if part is not None and decision is not None:
            part.decisions.append(decision)
            part.size += decision.judgement.group.size * 8
        return decision

    def history(self) -> History:
        """Return the recorded events and decisions."""
        if not self._parts:
            return History(start=None)
        events = tuple(event for part in self._parts for event in part.events)
        decisions = tuple(decision for part in self._parts for decision in part.decisions)
        return History(start=self._parts[0].start, events=events, decisions=decisions)

    def _part(self) -> _Part | None:
        """Return the part for the next event; None if a part would take too much memory."""
        most, watch_size = _MOST_BYTES // 2, _PER_PARTITION * self.watch.knowledge.size
        if watch_size >= most:
            self._parts = ()
            return None
        newest = self._parts[-1] if self._parts else None
        if newest is None or newest.readings >= _MOST_READINGS // 2 or newest.size + watch_size >= most:
            newest = _Part(copy.deepcopy(self.watch))
            self._parts = (*self._parts[-1:], newest)
        return newest
