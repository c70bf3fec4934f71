"""Share fetches that wait for records to acquire. Mirrors Kafka's ``DelayedShareFetch``.

Unlike a fetch, a share fetch may try in vain, because another member acquired the new records. Then it continues to
wait.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from loadwise.coordinator.calls.call import Answer, Call, Response
from loadwise.coordinator.calls.waits import Waits
from loadwise.coordinator.groups.events import Token


class DelayedShareFetch(NamedTuple):
    """A share fetch that acquired nothing. Its answer follows once it can, or when it times out."""

    attempt: Callable[[bool], Response | None]
    """Tries again: the response, or None if there is nothing yet. With True it must respond."""
    subjects: Sequence[Hashable]
    """The logs and partitions of its group that it waits for."""
    max_wait_ms: int


class DelayedShareFetches(Waits[tuple[Call, DelayedShareFetch]]):
    """Share fetches that found nothing, in order of arrival."""

    def __init__(self) -> None:
        super().__init__()
        self._to_look: set[Token] = set()

    def delay(self, call: Call, fetch: DelayedShareFetch, now_ms: int) -> None:
        """Add a fetch that waits until it can acquire records, up to its deadline."""
        self.add(call.token, (call, fetch), fetch.subjects, now_ms + fetch.max_wait_ms)

    def changed(self, subjects: Iterable[Hashable]) -> None:
        """Note that logs grew or were deleted, or that records became available again."""
        for subject in subjects:
            self._to_look.update(token for token, _ in self.of(subject))

    def take_completed(self, now_ms: int) -> list[Answer]:
        """Remove the completed fetches and return their answers."""
        answers = []
        due = set(self.due(now_ms))
        tokens, self._to_look = self._to_look | due, set()
        for token in sorted(tokens):
            waiting = self.get(token)
            if waiting is None:
                continue
            call, fetch = waiting
            response = fetch.attempt(token in due)
            if response is not None:
                self.pop(token)
                answers.append(Answer(call, response))
        return answers
