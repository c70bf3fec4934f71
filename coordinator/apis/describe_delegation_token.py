"""DescribeDelegationToken (41): lists the tokens of owners. v2 flexible; v3 each token's requester."""

from __future__ import annotations

from loadwise.coordinator.apis.access import open_to_all
from loadwise.coordinator.apis.token_refusals import token_error
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.kafka_messages import DescribeDelegationTokenRequest, DescribeDelegationTokenResponse
from loadwise.protocol.messages import Api


def handle(call: Call, _: Cluster) -> Message:
    """Return the error, because tokens are disabled."""
    return call.response(error_code=token_error(call), tokens=[], throttle_time_ms=0)


SERVICE = Service(Api.of(DescribeDelegationTokenRequest, DescribeDelegationTokenResponse), handle, open_to_all)
