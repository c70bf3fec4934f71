"""AlterUserScramCredentials (51, v0): adds, changes and deletes SCRAM users (KIP-554).

Mirrors Kafka's ``ScramControlManager``: one change per user and request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.handling.access import of_cluster
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.security.feature import ClusterLogins
from loadwise.coordinator.security.users import LEAST_ITERATIONS, MOST_ITERATIONS, ScramCredential
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse

SCRAM_TYPES: Mapping[str, int] = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""Kafka's numbers for the mechanisms."""

_NAMES = {number: name for name, number in SCRAM_TYPES.items()}
_Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
_Asked: TypeAlias = AlterUserScramCredentialsRequest.ScramCredentialDeletion | _Upsertion
_Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


def handle(call: Call[AlterUserScramCredentialsRequest], cluster: Cluster) -> AlterUserScramCredentialsResponse:
    """Change each user separately."""
    changes: dict[str, _Asked] = {}
    refused: dict[str, tuple[ErrorCode, str]] = {}
    asked: list[_Asked] = [*call.body.deletions, *call.body.upsertions]
    for each in asked:
        if each.name in refused:
            continue
        if changes.pop(each.name, None) is not None:
            message = "A user credential cannot be altered twice in the same request"
            refused[each.name] = (ErrorCode.DUPLICATE_RESOURCE, message)
        elif (problem := _problem(cluster, each)) is not None:
            refused[each.name] = problem
        else:
            changes[each.name] = each
    for name, each in list(changes.items()):
        if isinstance(each, _Upsertion) and not each.salted_password:
            del changes[name]
            refused[name] = (ErrorCode.UNKNOWN_SERVER_ERROR, "The salted password is empty")  # Kafka fails on it
        else:
            _change(cluster, name, each)
    results = [_Result(user=name, error_code=ErrorCode.NONE, error_message=None) for name in changes]
    results += [
        _Result(user=name, error_code=error, error_message=message) for name, (error, message) in refused.items()
    ]
    return AlterUserScramCredentialsResponse(results=results)


def _problem(cluster: Cluster, change: _Asked) -> tuple[ErrorCode, str] | None:
    """Return why a credential is not valid; None if it is."""
    if not change.name:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    mechanism = _NAMES.get(change.mechanism)
    if mechanism is None:
        return ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    if not isinstance(change, _Upsertion):
        if not ClusterLogins.of(cluster).users.has_scram(change.name, mechanism):
            return ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
    elif change.iterations < LEAST_ITERATIONS:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"
    elif change.iterations > MOST_ITERATIONS:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"
    return None


def _change(cluster: Cluster, name: str, change: _Asked) -> None:
    mechanism = _NAMES[change.mechanism]
    if not isinstance(change, _Upsertion):
        ClusterLogins.of(cluster).users.delete_scram(name, mechanism)
    else:
        credential = ScramCredential.of(mechanism, change.salt, change.salted_password, change.iterations)
        ClusterLogins.of(cluster).users.put_scram(name, mechanism, credential)


guard = of_cluster(Operation.ALTER)
