"""The newest readings of a watched group, and what they show. Pure, but for the retention that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from loadwise.running_group.members import GroupReading
from loadwise.watch.status import GroupStatus, status
from loadwise.watch.verdict import StandingVerdict, Verdict


class Recent:
    """The readings of a window.

    ``retention_of`` returns the ``retention.ms`` of topics, as `loadwise.running_group.reading.read_retention_ms` does;
    each topic is asked for until it is known. ``from_beginning`` as in `loadwise.watch.status.status`.
    """

    def __init__(
        self,
        retention_of: Callable[[Sequence[str]], Mapping[str, int]],
        *,
        from_beginning: bool,
        window_s: float,
    ) -> None:
        self._retention_of, self._from_beginning, self._window_s = retention_of, from_beginning, window_s
        self._standing = StandingVerdict()
        self._retention_ms: dict[str, int] = {}
        self.readings: list[GroupReading] = []
        """The readings of the window, oldest first."""

    def after(self, newest: GroupReading) -> tuple[GroupStatus, Verdict]:
        """Take in a reading, and return the group's status and the verdict on it."""
        unknown = [topic for topic in newest.partitions if topic not in self._retention_ms]
        self._retention_ms.update(self._retention_of(unknown))
        # The last one counts however long ago it was: with an interval above the window there is no other.
        earlier, last = self.readings[:-1], self.readings[-1:]
        recent = [each for each in earlier if newest.at_s - each.at_s <= self._window_s]
        self.readings = [*recent, *last, newest]
        now = status(self.readings, from_beginning=self._from_beginning, retention_ms=self._retention_ms)
        return now, self._standing.after(now)
