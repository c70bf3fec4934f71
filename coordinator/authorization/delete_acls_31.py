"""DeleteAcls (31, v1 to v3): deletes the ACLs that match; SECURITY_DISABLED without an authorizer.

v1 prefixed patterns (KIP-290); v2 flexible; v3 ACLs of users (KIP-373). Mirrors Kafka's ``AclControlManager``.
"""

from __future__ import annotations

from loadwise.coordinator.access import of_cluster
from loadwise.coordinator.authorization.acl_rows import NO_AUTHORIZER, filter_of, has_unknown
from loadwise.coordinator.authorization.feature import ClusterAcls
from loadwise.coordinator.calls import Call, HangUp
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.rights import Operation
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DeleteAclsRequest, DeleteAclsResponse

_Result = DeleteAclsResponse.DeleteAclsFilterResult


def handle(call: Call[DeleteAclsRequest], cluster: Cluster) -> DeleteAclsResponse | HangUp:
    """Delete for all filters at once; an ACL that matches two of them is returned for both."""
    if any(map(has_unknown, call.body.filters)):
        return HangUp("a filter of a DeleteAcls contains the number of UNKNOWN")
    wanted = [filter_of(each) for each in call.body.filters]
    authorizer = ClusterAcls.of(cluster).authorizer
    if authorizer is None:
        refused = _Result(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, matching_acls=[])
        return DeleteAclsResponse(filter_results=[refused for _ in wanted])
    problems = [each.problem() for each in wanted]
    found = [authorizer.matching(each) if each.problem() is None else [] for each in wanted]
    for acl in dict.fromkeys(acl for acls in found for acl in acls):
        authorizer.remove(acl)
    results = [
        _Result(
            error_code=ErrorCode.NONE if problem is None else ErrorCode.INVALID_REQUEST,
            error_message=problem,
            matching_acls=[
                _Result.DeleteAclsMatchingAcl(
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
                for acl in acls
            ],
        )
        for acls, problem in zip(found, problems, strict=True)
    ]
    return DeleteAclsResponse(filter_results=results)


guard = of_cluster(Operation.ALTER)
