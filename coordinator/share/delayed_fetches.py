"""Share fetches that wait for records to acquire. Mirrors Kafka's ``DelayedShareFetch``.

Unlike a fetch, a share fetch may try in vain, because another member acquired the new records. Then it continues to
wait.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from loadwise.coordinator.calls import Answer, Call, Response
from loadwise.coordinator.groups.events import Token
from loadwise.coordinator.waits import Waits


class DelayedShareFetch(NamedTuple):
    """A share fetch that acquired nothing. Its answer follows once it can, or when it times out."""

    attempt: Callable[[bool], Response | None]
    """Tries again: the response, or None if there is nothing yet. With True it must respond."""
    subjects: Sequence[Hashable]
    """The logs and partitions of its group that it waits for."""
    max_wait_ms: int


class DelayedShareFetches:
    """Share fetches that found nothing, in order of arrival."""

    def __init__(self) -> None:
        self._waits: Waits[tuple[Call, DelayedShareFetch]] = Waits()
        self._to_look: set[Token] = set()

    def __len__(self) -> int:
        return len(self._waits)

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when the next fetch times out; None without one."""
        return self._waits.next_deadline_ms

    def delay(self, call: Call, fetch: DelayedShareFetch, now_ms: int) -> None:
        """Add a fetch that waits until it can acquire records, up to its deadline."""
        self._waits.add(call.token, (call, fetch), fetch.subjects, now_ms + fetch.max_wait_ms)

    def changed(self, subjects: Iterable[Hashable]) -> None:
        """Note that logs grew or were deleted, or that records became available again."""
        for subject in subjects:
            self._to_look.update(token for token, _ in self._waits.of(subject))

    def take_completed(self, now_ms: int) -> list[Answer]:
        """Remove the completed fetches and return their answers."""
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
        """Drop the fetch of a disconnected client; does nothing for other tokens."""
        self._waits.pop(token)
