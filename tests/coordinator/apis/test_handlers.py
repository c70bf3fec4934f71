"""Each handler names the messages of its API, so that mypy knows their fields."""

from __future__ import annotations

import inspect

import pytest

from loadwise.coordinator.routing.services import Service, services

TOKENS = {38, 39, 40, 41}
"""One handler answers these APIs."""
BESIDE = {"DelayedFetch", "EncodedBody", "GroupRequest", "HangUp", "LastAnswer", "Later", "NoAnswer"}


@pytest.mark.parametrize(
    "service", [pytest.param(each, id=each.api.name) for key, each in services().items() if key not in TOKENS]
)
def test_a_handler_takes_and_returns_its_own_messages(service: Service) -> None:
    types = inspect.get_annotations(service.handle)
    assert types["call"] == f"Call[{service.api.name}Request]"
    result = types["return"].removeprefix("Turns[").removesuffix("]")
    messages = set(result.split(" | ")) - BESIDE
    assert messages == {f"{service.api.name}Response"} or (not messages and "GroupRequest" in types["return"])
