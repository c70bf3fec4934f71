"""DescribeDelegationToken (41): the tokens of some owners. v2 flexible; v3 who asked for each."""

from __future__ import annotations

from loadwise.coordinator.apis.access import open_to_all
from loadwise.coordinator.apis.token_refusals import token_error
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.delegation_token import DescribeDelegationTokenRequest, DescribeDelegationTokenResponse
from loadwise.protocol.messages import Api


def handle(call: Call, _: Cluster) -> Message:
    """Refuse it."""
    return call.response(error_code=token_error(call), tokens=[], throttle_time_ms=0)


SERVICE = Service(Api.of(DescribeDelegationTokenRequest, DescribeDelegationTokenResponse), handle, open_to_all)
