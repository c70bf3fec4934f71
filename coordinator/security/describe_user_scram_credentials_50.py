"""DescribeUserScramCredentials (50, v0): lists SCRAM users without their secrets (KIP-554)."""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.handling.access import of_cluster
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.security.alter_user_scram_credentials_51 import SCRAM_TYPES
from loadwise.coordinator.security.feature import ClusterLogins
from loadwise.coordinator.turns import Turns, counted, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse

_Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


def handle(
    call: Call[DescribeUserScramCredentialsRequest], cluster: Cluster
) -> Turns[DescribeUserScramCredentialsResponse]:
    """Describe the named users, or all."""
    named = yield from counted(each.name for each in call.body.users or ())
    names = list(named or ClusterLogins.of(cluster).users.scram_names)
    results = yield from listed(_result(cluster, name, named[name]) for name in names)
    return DescribeUserScramCredentialsResponse(error_code=ErrorCode.NONE, error_message=None, results=results)


def _result(cluster: Cluster, name: str, times: int) -> _Result:
    infos = [
        _Result.CredentialInfo(mechanism=SCRAM_TYPES[mechanism], iterations=iterations)
        for mechanism, iterations in ClusterLogins.of(cluster).users.scram_iterations(name).items()
    ]
    error, message = ErrorCode.NONE, ""
    if times > 1:
        error = ErrorCode.DUPLICATE_RESOURCE
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
    elif not infos:
        error = ErrorCode.RESOURCE_NOT_FOUND
        message = f"Attempt to describe a user credential that does not exist: {name}"
    return _Result(user=name, error_code=error, error_message=message, credential_infos=[] if error else infos)


guard = of_cluster(Operation.DESCRIBE)
