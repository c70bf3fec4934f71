"""DescribeDelegationToken (41, v1 to v3): lists the tokens of owners. v2 flexible; v3 each token's requester."""

from __future__ import annotations

from loadwise.coordinator.access import open_to_all
from loadwise.coordinator.apis.token_refusals import token_error
from loadwise.coordinator.calls import Call, Message
from loadwise.coordinator.kafka_cluster import Cluster


def handle(call: Call, _: Cluster) -> Message:
    """Return the error, because tokens are disabled."""
    return call.response(error_code=token_error(call), tokens=[], throttle_time_ms=0)


guard = open_to_all
