"""Requests that wait for a change or a deadline. Mirrors Kafka's ``DelayedOperation``."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Generic, TypeVar

from loadwise.coordinator.groups.deadlines import Deadlines
from loadwise.coordinator.groups.events import Token

W = TypeVar("W")


class Waits(Generic[W]):
    """Waiting items, found by token, by subject and by deadline."""

    def __init__(self) -> None:
        self._waiting: dict[Token, tuple[W, Collection[Hashable]]] = {}
        self._watchers: dict[Hashable, dict[Token, None]] = {}
        self._deadlines: Deadlines[Token] = Deadlines()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when `due` must be called next; None if nothing waits."""
        return self._deadlines.next_ms

    def add(self, token: Token, waiting: W, subjects: Collection[Hashable], deadline_ms: int) -> None:
        """Add an item that waits for its subjects or its deadline."""
        self._waiting[token] = (waiting, subjects)
        for subject in subjects:
            self._watchers.setdefault(subject, {})[token] = None
        self._deadlines.set(token, deadline_ms)

    def get(self, token: Token) -> W | None:
        """Return the item of a token; None if it no longer waits."""
        found = self._waiting.get(token)
        return None if found is None else found[0]

    def of(self, subject: Hashable) -> Iterator[tuple[Token, W]]:
        """Return the items that wait for a subject with their tokens, in order of arrival."""
        for token in self._watchers.get(subject, ()):
            yield token, self._waiting[token][0]

    def due(self, now_ms: int) -> list[Token]:
        """Return the tokens past their deadline, earliest first; each is returned once."""
        return self._deadlines.due(now_ms)

    def pop(self, token: Token) -> W | None:
        """Remove and return the item of a token; None without one."""
        found = self._waiting.pop(token, None)
        if found is None:
            return None
        waiting, subjects = found
        self._deadlines.set(token, None)
        for subject in subjects:
            watchers = self._watchers[subject]
            watchers.pop(token, None)
            if not watchers:
                del self._watchers[subject]
        return waiting
