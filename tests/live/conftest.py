"""Live scenes that are played side by side: most of their time is waiting, and each is a test of its own."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

Cases = Mapping[str, tuple[Any, ...]]
Play = Callable[..., Mapping[str, Future[Any]]]


@pytest.fixture(scope="module")
def side_by_side(broker: str) -> Iterator[Play]:
    """``side_by_side(scene, cases)[name].result()``: what ``scene(broker, *case)`` answers or raises, for each case.

    The cases begin when the first of them is asked for, so that each has its own test and they wait together. So many
    ``at_once``: two cores have no time for more than four groups, nor for more than two with much to do.
    """
    played: dict[tuple[Callable[..., Any], frozenset[str]], dict[str, Future[Any]]] = {}
    with ExitStack() as pools:

        def play(scene: Callable[..., Any], cases: Cases, *, at_once: int = 4) -> Mapping[str, Future[Any]]:
            key = scene, frozenset(cases)
            if key not in played:
                pool = pools.enter_context(ThreadPoolExecutor(at_once))
                played[key] = {name: pool.submit(scene, broker, *case) for name, case in cases.items()}
            return played[key]

        yield play
