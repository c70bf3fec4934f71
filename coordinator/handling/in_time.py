"""Requests to Kafka's controller have a time limit, and one without time left is refused as a whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.handling.refusals import refusal_in_turns
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode

B = TypeVar("B")
R = TypeVar("R")


def in_time(handle: Callable[[Call[B], Cluster], Turns[R]]) -> Callable[[Call[B], Cluster], Turns[R]]:
    """Answer REQUEST_TIMED_OUT to a request whose ``timeout_ms`` is not positive."""

    @wraps(handle)
    def handled(call: Call[Any], cluster: Cluster) -> Turns[R]:
        if call.body.timeout_ms <= 0:
            return cast("R", (yield from refusal_in_turns(call, ErrorCode.REQUEST_TIMED_OUT)))
        return (yield from handle(call, cluster))

    return handled
