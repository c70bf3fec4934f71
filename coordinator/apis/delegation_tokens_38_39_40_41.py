"""The APIs of delegation tokens: refused, as on a Kafka without ``delegation.token.secret.key`` (KIP-48).

CreateDelegationToken (38, v1 to v3), RenewDelegationToken (39, v1 to v2), ExpireDelegationToken (40, v1 to v2) and
DescribeDelegationToken (41, v1 to v3).
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import ANONYMOUS, Call
from loadwise.coordinator.handling.access import open_to_all
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.structs import Struct

_TIMES = {"issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms"}
_NEVER_MS = -1


def handle(call: Call, cluster: Cluster) -> Struct:
    """Return the error, in the names of the client's principal; one without a login gets another error."""
    error, time_ms = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, 0
    if call.principal == ANONYMOUS:
        error, time_ms = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, _NEVER_MS
    kind, _, name = call.principal.partition(":")
    values = {
        "principal_type": kind,
        "principal_name": name,
        "token_requester_principal_type": kind,
        "token_requester_principal_name": name,
        **dict.fromkeys(_TIMES, time_ms),
    }
    row = call.request.api.response
    known = {field: each for field, each in values.items() if field in row.schema.fields}
    response: Struct = row(error_code=error, **known)
    return response


guard = open_to_all
