"""Requests that name one thing twice. Kafka reads most of them into maps, where the last one counts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

from loadwise.coordinator.calls.call import Call, Outcome
from loadwise.coordinator.handling.access import with_body
from loadwise.coordinator.turns import Turns, listed

_MOST_REPEATED = 10_000

F = TypeVar("F", bound=Callable[..., Any])


class Repeats:
    """How much of an answer is for things that a request names again.

    Kafka answers some of them each time. Here that ends at a limit, so that a small request cannot ask for gigabytes.
    """

    def __init__(self) -> None:
        self._left = _MOST_REPEATED
        self._named: set[Hashable] = set()

    def allow(self, name: Hashable, rows: int) -> bool:
        """Return whether something with so many rows may be answered: it is new, or there is room."""
        if name not in self._named:
            self._named.add(name)
            return True
        if rows > self._left:
            return False
        self._left -= rows
        return True


@dataclass(frozen=True, slots=True)
class EachOnce:
    """Requests with topics and their partitions, each of which counts once: where it is first, as it is last.

    Mirrors a map of Kafka whose keys are partitions. Topics that are named twice become one, unless another one is
    between them and the map is a ``LinkedHashMap``.
    """

    index: str
    """The field with the number of a partition."""
    topics: str = "topics"
    partitions: str = "partitions"
    name: Callable[[Call, Any], Hashable] = lambda _, topic: topic.name
    is_linked: bool = False

    def of(self, call: Call) -> Turns[Call]:
        """Return the call with each partition once."""
        topics = getattr(call.body, self.topics)
        names = yield from listed(self.name(call, topic) for topic in topics)
        if not (yield from self._is_any_twice(topics, names)):
            return call
        last: dict[tuple[Hashable, int], tuple[Any, Any]] = {}
        for name, topic in zip(names, topics, strict=True):
            yield
            for row in getattr(topic, self.partitions):
                last[name, getattr(row, self.index)] = topic, row
                yield
        merged: list[Any] = []
        known: dict[Hashable, Any] = {}
        for (name, _), (topic, row) in last.items():
            yield
            found = known.get(name)
            if found is None or (self.is_linked and found is not merged[-1]):
                found = known[name] = copy.copy(topic)
                setattr(found, self.partitions, [])
                merged.append(found)
            getattr(found, self.partitions).append(row)
        return with_body(call, {self.topics: merged})

    def before(self, act: F) -> F:
        """Decorate a handler or a guard, which gets such calls."""

        @wraps(act)
        def acted(call: Call, *others: Any) -> Turns[Outcome]:
            once = yield from self.of(call)
            outcome: Outcome = act(once, *others)
            return outcome

        return cast("F", acted)

    def _is_any_twice(self, topics: Sequence[Any], names: Sequence[Hashable]) -> Turns[bool]:
        if len(names) > 1 and len(set(names)) < len(names):
            return True
        for topic in topics:
            rows = getattr(topic, self.partitions)
            numbers = set()
            for row in rows:
                numbers.add(getattr(row, self.index))
                yield
            if len(numbers) < len(rows):
                return True
        return False
