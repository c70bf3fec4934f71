"""Scenarios that a test plays on Apache Kafka and on our coordinator, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from sessions import Session

Scenario = Callable[[Any], Iterator[Any]]
"""Asks a broker, and yields each answer in a form that can be compared."""


def scenarios(*played: Scenario) -> pytest.MarkDecorator:
    """A test's argument ``scenario``."""
    return pytest.mark.parametrize("scenario", played, ids=lambda scenario: scenario.__name__)


def sessions_agree(
    scenario: Scenario, kind: type[Session], kafka: str, ours: str, begin: Callable[[Any], object] = lambda _: None
) -> None:
    with closing(kind(kafka)) as theirs, closing(kind(ours)) as mine:
        theirs.is_kafka = True
        for session in (theirs, mine):
            begin(session)
        steps_agree(scenario, theirs, mine)


def steps_agree(scenario: Scenario, theirs: Any, ours: Any) -> None:
    for step, (expected, got) in enumerate(zip(scenario(theirs), scenario(ours), strict=True)):
        assert got == expected, f"answer {step} of Kafka and of ours:\n{expected}\n{got}"
