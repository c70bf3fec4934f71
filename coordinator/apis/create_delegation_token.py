"""CreateDelegationToken (38): a client wants a token to log in with. v2 flexible; v3 for another owner."""

from __future__ import annotations

from loadwise.coordinator.apis.access import open_to_all
from loadwise.coordinator.apis.token_refusals import NEVER_MS, requester, token_error
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from loadwise.protocol.messages import Api

_OWNERS = 3


def handle(call: Call, _: Cluster) -> Message:
    """Refuse it."""
    kind, name = requester(call)
    owner = (kind, name)
    if call.version >= _OWNERS and call.body.owner_principal_name:
        owner = (call.body.owner_principal_type or kind, call.body.owner_principal_name)
    return call.response(
        error_code=token_error(call),
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=kind,
        token_requester_principal_name=name,
        issue_timestamp_ms=NEVER_MS,
        expiry_timestamp_ms=NEVER_MS,
        max_timestamp_ms=NEVER_MS,
        token_id="",
        hmac=b"",
        throttle_time_ms=0,
    )


SERVICE = Service(Api.of(CreateDelegationTokenRequest, CreateDelegationTokenResponse), handle, open_to_all)
