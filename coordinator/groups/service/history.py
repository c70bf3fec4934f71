"""The newest state transitions of groups, for the view and the log. Bounded, without a clock."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadwise.coordinator.groups.effects import Transition

_MAX_REASON = 300
"""Maximum characters of a reason; ids in it may have 32,767 each."""
_MOMENT_BYTES = 200


@dataclass(frozen=True, slots=True)
class Moment:
    """One transition of one group."""

    at_ms: int
    """By the coordinator's clock."""
    group_id: str
    transition: Transition

    @property
    def size_bytes(self) -> int:
        """Return its approximate memory."""
        return _MOMENT_BYTES + len(self.group_id) + len(self.transition.reason)


def printable(text: str) -> str:
    """Return text from clients in one line: control characters escaped, and truncated."""
    shown = text if len(text) <= _MAX_REASON else f"{text[:_MAX_REASON]}…"
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in shown)


class History:
    """The newest transitions of the groups that changed last, including deleted ones."""

    def __init__(self, *, max_groups: int = 1000, max_moments: int = 100, max_bytes: int = 8 * 1024 * 1024) -> None:
        self._max_groups = max_groups
        self._max_moments = max_moments
        self._max_bytes = max_bytes
        self._bytes = 0
        self._groups: OrderedDict[str, deque[Moment]] = OrderedDict()
        self._unlogged: deque[Moment] = deque(maxlen=max_groups)

    def add(self, group_id: str, transition: Transition, now_ms: int) -> None:
        """Add a transition; the group's oldest is dropped, or the group unchanged for longest."""
        moment = Moment(now_ms, group_id, replace(transition, reason=printable(transition.reason)))
        of_group = self._groups.setdefault(group_id, deque())
        of_group.append(moment)
        self._groups.move_to_end(group_id)
        self._bytes += moment.size_bytes
        if len(of_group) > self._max_moments:
            self._bytes -= of_group.popleft().size_bytes
        while len(self._groups) > 1 and (len(self._groups) > self._max_groups or self._bytes > self._max_bytes):
            _, given_up = self._groups.popitem(last=False)
            self._bytes -= sum(each.size_bytes for each in given_up)
        self._unlogged.append(moment)

    def of(self, group_id: str) -> Sequence[Moment]:
        """Return a group's transitions, oldest first; empty if unknown."""
        return tuple(self._groups.get(group_id, ()))

    def take_unlogged(self) -> Sequence[Moment]:
        """Return the transitions since the last call, oldest first."""
        if not self._unlogged:
            return ()
        moments = tuple(self._unlogged)
        self._unlogged.clear()
        return moments
