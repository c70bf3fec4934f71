"""RenewDelegationToken (39): makes a token expire later. v2 flexible."""

from __future__ import annotations

from loadwise.coordinator.apis.access import open_to_all
from loadwise.coordinator.apis.token_refusals import refuse_new_end
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.kafka_messages import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from loadwise.protocol.messages import Api


def handle(call: Call, _: Cluster) -> Message:
    """Return the error, because tokens are disabled."""
    return refuse_new_end(call)


SERVICE = Service(Api.of(RenewDelegationTokenRequest, RenewDelegationTokenResponse), handle, open_to_all)
