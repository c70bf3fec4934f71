"""Share fetches that wait for records which they can acquire. Mirrors Kafka's ``DelayedShareFetch``.

Unlike a fetch, one may look in vain: what came, another member has acquired. Then it waits on, up to its time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from loadwise.coordinator.calls import Answer, Call, DelayedShareFetch
from loadwise.coordinator.groups.deadlines import Deadlines
from loadwise.coordinator.groups.events import Token


class DelayedShareFetches:
    """Share fetches that found nothing, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: dict[Token, tuple[Call, DelayedShareFetch]] = {}
        self._watchers: dict[Hashable, dict[Token, None]] = {}
        self._deadlines: Deadlines[Token] = Deadlines()
        self._to_look: dict[Token, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def next_deadline_ms(self) -> int | None:
        """When a fetch has to be answered with what there is; None if none waits."""
        return self._deadlines.next_ms

    def delay(self, call: Call, fetch: DelayedShareFetch, now_ms: int) -> None:
        """Let a fetch wait until it can acquire something, or its time is up."""
        self._waiting[call.token] = (call, fetch)
        for subject in fetch.subjects:
            self._watchers.setdefault(subject, {})[call.token] = None
        self._deadlines.set(call.token, now_ms + fetch.max_wait_ms)

    def changed(self, subjects: Iterable[Hashable]) -> None:
        """Note that logs have grown or are gone, or that records of share groups came back."""
        for subject in subjects:
            self._to_look |= self._watchers.get(subject, {})

    def take_completed(self, now_ms: int) -> list[Answer]:
        """Take out the fetches that are to be answered now, with their answers."""
        answers = []
        tokens, self._to_look = self._to_look, {}
        due = set(self._deadlines.due(now_ms))
        for token in sorted({*tokens, *due}):
            waiting = self._waiting.get(token)
            if waiting is None:
                continue
            call, fetch = waiting
            response = fetch.attempt(token in due)
            if response is not None:
                self.forget(token)
                answers.append(Answer(call, response))
        return answers

    def forget(self, token: Token) -> None:
        """Drop a fetch whose client is gone; others are passed over."""
        waiting = self._waiting.pop(token, None)
        if waiting is None:
            return
        self._deadlines.set(token, None)
        for subject in waiting[1].subjects:
            watchers = self._watchers[subject]
            watchers.pop(token, None)
            if not watchers:
                del self._watchers[subject]
