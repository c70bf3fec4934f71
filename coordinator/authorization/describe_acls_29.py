"""DescribeAcls (29, v1 to v3): lists the ACLs that match; SECURITY_DISABLED without an authorizer.

v1 prefixed patterns (KIP-290); v2 flexible; v3 ACLs of users (KIP-373).
"""

from __future__ import annotations

from loadwise.coordinator.authorization.acl_rows import filter_of, has_unknown
from loadwise.coordinator.authorization.acls import Acl
from loadwise.coordinator.authorization.feature import ClusterAcls
from loadwise.coordinator.calls.call import Call, HangUp
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.handling.access import of_cluster
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DescribeAclsRequest, DescribeAclsResponse

_NO_AUTHORIZER = "No Authorizer is configured on the broker"
_Resource = DescribeAclsResponse.DescribeAclsResource


def handle(call: Call[DescribeAclsRequest], cluster: Cluster) -> DescribeAclsResponse | HangUp:
    """List them, grouped by resource."""
    if has_unknown(call.body):
        return HangUp("the filter of a DescribeAcls contains the number of UNKNOWN")
    authorizer = ClusterAcls.of(cluster).authorizer
    if authorizer is None:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED,
            error_message=_NO_AUTHORIZER,
            resources=[],
        )
    by_pattern: dict[tuple[int, str, int], list[Acl]] = {}
    for acl in authorizer.matching(filter_of(call.body)):
        by_pattern.setdefault((acl.resource_type, acl.name, acl.pattern_type), []).append(acl)
    resources = [
        _Resource(
            resource_type=resource_type,
            resource_name=name,
            pattern_type=pattern_type,
            acls=[
                _Resource.AclDescription(
                    principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
                )
                for acl in acls
            ],
        )
        for (resource_type, name, pattern_type), acls in by_pattern.items()
    ]
    return DescribeAclsResponse(error_code=ErrorCode.NONE, error_message=None, resources=resources)


guard = of_cluster(Operation.DESCRIBE)
