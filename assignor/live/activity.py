"""Which members of a group go on, and which stand still: a rebalance of a classic group waits for all of them.

A member whose program hangs, or works for minutes on what one poll gave it, joins when it polls again. In an eager
group nobody reads until then. So it is better left alone with its backlog until it goes on, or until its client has put
it out because it has not polled for too long.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadwise.assignor.model import Bools

_STILL_MS, _STILL_COMMITS = 10_000, 2.0
"""Who has a backlog and has shown nothing for so long, and for the time of so many commits, stands still..."""
_AT_MOST_MS = 300_000
"""... for so long: clients leave their group then, by default. Whoever is still there hides its work, and joins."""


class Activity:
    """When each member was last seen to go on. ``slack_s`` is about the time between two commits of a member."""

    def __init__(self, slack_s: float) -> None:
        self._still_ms = max(_STILL_MS, round(_STILL_COMMITS * slack_s * 1000))
        self._last_ms: dict[str, int] = {}

    def watch(self, members: Sequence[str], now_ms: int) -> None:
        """These have joined, and all others are gone."""
        self._last_ms = dict.fromkeys(members, now_ms)

    def saw(self, members: Sequence[str], goes_on: Bools, now_ms: int) -> None:
        """Take in a reading: bool[M], who has committed something new, or has no backlog."""
        self._last_ms |= dict.fromkeys(
            (member for member, goes in zip(members, goes_on.tolist(), strict=True) if goes), now_ms
        )

    def heard(self, member: str, now_ms: int) -> None:
        """The member has told something."""
        self._last_ms[member] = now_ms

    def standing_still(self, now_ms: int) -> dict[str, float]:
        """Members that stand still and would be waited for, and for how many seconds they have."""
        return {member: ms / 1000 for member, ms in self.silent_ms(now_ms).items() if ms <= _AT_MOST_MS}

    def silent_ms(self, now_ms: int) -> dict[str, int]:
        """Members that process nothing of their backlog, and for how many ms they have not, however many these are."""
        silent = ((member, now_ms - at) for member, at in self._last_ms.items())
        return {member: ms for member, ms in silent if ms > self._still_ms}
