"""CreateDelegationToken (38, v1 to v3): requests a token for logins. v2 flexible; v3 for another owner."""

from __future__ import annotations

from loadwise.coordinator.access import Access, open_to_all
from loadwise.coordinator.apis.token_refusals import requester, time_of_no_token_ms, token_error
from loadwise.coordinator.calls import Call, Message
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.rights import Operation, ResourceType
from loadwise.protocol.error_codes import ErrorCode

_OWNERS = 3
_USER = "User"


def handle(call: Call, cluster: Cluster) -> Message:
    """Return the error, because tokens are disabled."""
    kind, name = requester(call)
    owner = (kind, name)
    if call.version >= _OWNERS and call.body.owner_principal_name:
        owner = (call.body.owner_principal_type or kind, call.body.owner_principal_name)
    error = _error(call, cluster, owner)
    time_ms = time_of_no_token_ms(error)
    return call.response(
        error_code=error,
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=kind,
        token_requester_principal_name=name,
        issue_timestamp_ms=time_ms,
        expiry_timestamp_ms=time_ms,
        max_timestamp_ms=time_ms,
        token_id="",
        hmac=b"",
        throttle_time_ms=0,
    )


def _error(call: Call, cluster: Cluster, owner: tuple[str, str]) -> ErrorCode:
    error = token_error(call)
    if error is not ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED:
        return error
    if owner != requester(call):
        access = Access(call, cluster)
        if not access.may(Operation.CREATE_TOKENS, ResourceType.USER, ":".join(owner)):
            return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if any(each.principal_type != _USER for each in call.body.renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return error


guard = open_to_all
