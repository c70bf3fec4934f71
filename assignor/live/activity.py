"""Which members of a group go on, and which stand still: a rebalance of a classic group waits for all of them.

A member whose program hangs, or works for minutes on what one poll gave it, joins when it polls again. In an eager
group nobody reads until then. So it is better left alone with its backlog until it goes on, or until its client has put
it out because it has not polled for too long. A member that polls and has paused its partitions looks the same, until
it joins at once in a rebalance that others have caused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loadwise.assignor.live.restraint import Refusal
from loadwise.assignor.live.tuning import ActivityTuning
from loadwise.assignor.model import Bools

_STILL = "a rebalance would wait for who has a backlog and processes none of it"


class Activity:
    """When each member was last seen to go on.

    ``slack_s`` is about the time between two commits of a member, ``max_poll_s`` the time after which clients that have
    not polled leave their group: whoever is still there hides its work, and joins.
    """

    def __init__(self, slack_s: float, max_poll_s: float, tuning: ActivityTuning) -> None:
        self._still_ms = round(1000 * max(tuning.still_s, tuning.still_commits * slack_s))
        self._commit_ms = round(1000 * slack_s)
        self._prompt_ms = round(1000 * tuning.still_s)
        self._at_most_ms = max_poll_s * 1000
        self._last_ms: dict[str, int] = {}
        self._read_ms = self._watched_ms = 0
        self._joins: set[str] = set()
        """Who has stood still, has joined at once nevertheless, and has not gone on since."""

    def watch(self, members: Sequence[str], now_ms: int, took_ms: int) -> None:
        """These have joined in a rebalance that took so long, and all others are gone."""
        began_ms = now_ms - took_ms
        if took_ms <= self._prompt_ms and began_ms - self._read_ms <= self._still_ms:
            self._joins.update(self.silent_ms(began_ms))
        self._joins.intersection_update(members)
        self._last_ms, self._watched_ms = dict.fromkeys(members, now_ms), now_ms

    def saw(self, members: Sequence[str], went_on: Bools, lagging: Bools, since_ms: int, now_ms: int) -> None:
        """Take in a reading: who has committed something new since the one before, and who has a backlog; bool[M]."""
        self._read_ms = now_ms
        for member, goes, lags in zip(members, went_on.tolist(), lagging.tolist(), strict=True):
            if goes or not lags:
                self._last_ms[member] = now_ms
            if goes and since_ms >= self._watched_ms:  # before that it may have been another member's work
                self._joins.discard(member)

    def heard(self, member: str, now_ms: int) -> None:
        """The member has told something."""
        self._last_ms[member] = now_ms

    def refusal(self, now_ms: int) -> Refusal | None:
        """Why no rebalance should be asked for while members stand still, or may: it would wait for them."""
        if still := self._waited_for(now_ms, self._still_ms):
            names = ", ".join(f"{name} for {s:.0f} s" for name, s in still.items())
            return Refusal(f"{_STILL}: {names}", waiting=True)
        if still := self._waited_for(now_ms, self._commit_ms):  # their next commits will tell
            return Refusal(f"the next commit will show whether they go on: {', '.join(still)}", unsure=True)
        return None

    def silent_ms(self, now_ms: int) -> dict[str, int]:
        """Members that process nothing of their backlog, and for how many ms they have not, however many these are."""
        return {member: ms for member, ms in self._silent(now_ms) if ms >= self._still_ms}

    def _waited_for(self, now_ms: int, least_ms: int) -> dict[str, float]:
        silent = ((member, ms) for member, ms in self._silent(now_ms) if least_ms <= ms <= self._at_most_ms)
        return {member: ms / 1000 for member, ms in silent if member not in self._joins}

    def _silent(self, now_ms: int) -> Iterator[tuple[str, int]]:
        return ((member, now_ms - at) for member, at in self._last_ms.items())
