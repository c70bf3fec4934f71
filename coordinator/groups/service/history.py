"""How groups came to be what they are: their newest transitions, for the view and the log. Bounded, and no clock."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from loadwise.coordinator.groups.effects import Transition


@dataclass(frozen=True, slots=True)
class Moment:
    """One transition of one group."""

    at_ms: int
    """By the coordinator's clock."""
    group_id: str
    transition: Transition


class History:
    """The newest transitions of the groups that changed last, deleted ones too."""

    def __init__(self, *, max_groups: int = 1000, max_moments: int = 100) -> None:
        self._max_groups = max_groups
        self._max_moments = max_moments
        self._groups: OrderedDict[str, deque[Moment]] = OrderedDict()
        self._unlogged: deque[Moment] = deque(maxlen=max_groups)

    def add(self, group_id: str, transition: Transition, now_ms: int) -> None:
        """Note a transition; the oldest one of the group, or the group unchanged for longest, gives way."""
        moment = Moment(now_ms, group_id, transition)
        self._groups.setdefault(group_id, deque(maxlen=self._max_moments)).append(moment)
        self._groups.move_to_end(group_id)
        if len(self._groups) > self._max_groups:
            self._groups.popitem(last=False)
        self._unlogged.append(moment)

    def of(self, group_id: str) -> Sequence[Moment]:
        """A group's transitions, oldest first; empty for one that is not known."""
        return tuple(self._groups.get(group_id, ()))

    def take_unlogged(self) -> Sequence[Moment]:
        """What happened since this was asked last, oldest first."""
        if not self._unlogged:
            return ()
        moments = tuple(self._unlogged)
        self._unlogged.clear()
        return moments
