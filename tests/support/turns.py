"""Running what goes on in turns to its end."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def finished(turns: Generator[None, None, T]) -> T:
    """What a generator returns in the end."""
    while True:
        try:
            next(turns)
        except StopIteration as end:
            result: T = end.value
            return result
