"""DeleteAcls (31, v1 to v3): deletes the ACLs that match; SECURITY_DISABLED without an authorizer.

v1 prefixed patterns (KIP-290); v2 flexible; v3 ACLs of users (KIP-373). Mirrors Kafka's ``AclControlManager``.
"""

from __future__ import annotations

from loadwise.coordinator.authorization.acl_rows import NO_AUTHORIZER, filter_of, has_unknown
from loadwise.coordinator.authorization.acls import Acl
from loadwise.coordinator.authorization.feature import ClusterAcls
from loadwise.coordinator.calls.call import Call, HangUp
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.handling.access import of_cluster
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DeleteAclsRequest, DeleteAclsResponse

_Result = DeleteAclsResponse.DeleteAclsFilterResult


def handle(call: Call[DeleteAclsRequest], cluster: Cluster) -> Turns[DeleteAclsResponse | HangUp]:
    """Delete for all filters at once; an ACL that matches two of them is returned for both."""
    authorizer = ClusterAcls.of(cluster).authorizer
    wanted = []
    for each in call.body.filters:
        if has_unknown(each):
            return HangUp("a filter of a DeleteAcls contains the number of UNKNOWN")
        wanted.append(filter_of(each))
        yield
    if authorizer is None:
        refused = _Result(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, matching_acls=[])
        return DeleteAclsResponse(filter_results=[refused for _ in wanted])
    results = []
    matched: dict[Acl, None] = {}
    for acl_filter in wanted:
        problem = acl_filter.problem()
        found = authorizer.matching(acl_filter) if problem is None else []
        matched |= dict.fromkeys(found)
        results.append(
            _Result(
                error_code=ErrorCode.NONE if problem is None else ErrorCode.INVALID_REQUEST,
                error_message=problem,
                matching_acls=[_deleted(acl) for acl in found],
            )
        )
        yield 1 + authorizer.size
    for acl in matched:
        authorizer.remove(acl)
    return DeleteAclsResponse(filter_results=results)


def _deleted(acl: Acl) -> _Result.DeleteAclsMatchingAcl:
    return _Result.DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE,
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


guard = of_cluster(Operation.ALTER)
