"""Share fetches that wait for records which they can acquire. Mirrors Kafka's ``DelayedShareFetch``.

Unlike a fetch, one may look in vain: what came, another member has acquired. Then it waits on, up to its time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from loadwise.coordinator.calls import Answer, Call, DelayedShareFetch
from loadwise.coordinator.groups.events import Token
from loadwise.coordinator.waits import Waits


class DelayedShareFetches:
    """Share fetches that found nothing, in the order in which they came."""

    def __init__(self) -> None:
        self._waits: Waits[tuple[Call, DelayedShareFetch]] = Waits()
        self._to_look: set[Token] = set()

    def __len__(self) -> int:
        return len(self._waits)

    @property
    def next_deadline_ms(self) -> int | None:
        """When a fetch has to be answered with what there is; None if none waits."""
        return self._waits.next_deadline_ms

    def delay(self, call: Call, fetch: DelayedShareFetch, now_ms: int) -> None:
        """Let a fetch wait until it can acquire something, or its time is up."""
        self._waits.add(call.token, (call, fetch), fetch.subjects, now_ms + fetch.max_wait_ms)

    def changed(self, subjects: Iterable[Hashable]) -> None:
        """Note that logs have grown or are gone, or that records of share groups came back."""
        for subject in subjects:
            self._to_look.update(token for token, _ in self._waits.of(subject))

    def take_completed(self, now_ms: int) -> list[Answer]:
        """Take out the fetches that are to be answered now, with their answers."""
        answers = []
        due = set(self._waits.due(now_ms))
        tokens, self._to_look = self._to_look | due, set()
        for token in sorted(tokens):
            waiting = self._waits.get(token)
            if waiting is None:
                continue
            call, fetch = waiting
            response = fetch.attempt(token in due)
            if response is not None:
                self._waits.pop(token)
                answers.append(Answer(call, response))
        return answers

    def forget(self, token: Token) -> None:
        """Drop a fetch whose client is gone; others are passed over."""
        self._waits.pop(token)
