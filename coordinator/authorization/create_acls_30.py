"""CreateAcls (30, v1 to v3): new ACLs; SECURITY_DISABLED without an authorizer. v2 flexible.

v1 prefixed patterns (KIP-290); v3 ACLs of users (KIP-373). Mirrors Kafka's ``AclControlManager``.
"""

from __future__ import annotations

from loadwise.coordinator.authorization.acl_rows import NO_AUTHORIZER
from loadwise.coordinator.authorization.acls import Acl, PatternType, Permission
from loadwise.coordinator.authorization.feature import ClusterAcls
from loadwise.coordinator.calls.call import Call, HangUp
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.handling.access import of_cluster
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import CreateAclsRequest, CreateAclsResponse

_Result = CreateAclsResponse.AclCreationResult


def handle(call: Call[CreateAclsRequest], cluster: Cluster) -> Turns[CreateAclsResponse | HangUp]:
    """Add each ACL separately; an existing one is no error."""
    acls = yield from listed(
        Acl(
            ResourceType(each.resource_type),
            each.resource_name,
            PatternType(each.resource_pattern_type),
            each.principal,
            each.host,
            Operation(each.operation),
            Permission(each.permission_type),
        )
        for each in call.body.creations
    )
    is_refused = False
    for each, acl in zip(call.body.creations, acls, strict=True):
        yield
        if 0 in _numbers(each):
            return HangUp("a CreateAcls contains the number of UNKNOWN")
        is_refused = is_refused or _is_for_filters(acl)
    if is_refused:
        refused = _Result(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message=None)
        return CreateAclsResponse(results=[refused for _ in acls])
    results = yield from listed(_created(cluster, acl) for acl in acls)
    return CreateAclsResponse(results=results)


def _numbers(creation: CreateAclsRequest.AclCreation) -> tuple[int, ...]:
    return (
        creation.resource_type, creation.resource_pattern_type, creation.operation, creation.permission_type
    )  # fmt: skip


def _is_for_filters(acl: Acl) -> bool:
    """Return whether it has a value for filters only, on which Kafka fails."""
    words = {acl.resource_type.name, acl.pattern_type.name, acl.operation.name, acl.permission.name}
    return not words.isdisjoint({"ANY", "MATCH"})


def _created(cluster: Cluster, acl: Acl) -> _Result:
    authorizer = ClusterAcls.of(cluster).authorizer
    if authorizer is None:
        return _Result(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    problem = acl.problem()
    if problem is not None:
        return _Result(error_code=ErrorCode.INVALID_REQUEST, error_message=problem)
    authorizer.add(acl)
    return _Result(error_code=ErrorCode.NONE, error_message="")


guard = of_cluster(Operation.ALTER)
