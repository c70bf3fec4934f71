"""Not an API: ACLs and filters in DescribeAcls, CreateAcls and DeleteAcls."""

from __future__ import annotations

from typing import TypeAlias

from loadwise.coordinator.authorization.acls import AclFilter, PatternType, Permission
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.protocol.kafka_messages import DeleteAclsRequest, DescribeAclsRequest

_Filter: TypeAlias = DescribeAclsRequest | DeleteAclsRequest.DeleteAclsFilter
NO_AUTHORIZER = "No Authorizer is configured."
"""Why there are no ACLs."""


def filter_of(asked: _Filter) -> AclFilter:
    """Return the filter of a request; unknown numbers become UNKNOWN."""
    return AclFilter(
        ResourceType(asked.resource_type_filter),
        asked.resource_name_filter,
        PatternType(asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        Operation(asked.operation),
        Permission(asked.permission_type),
    )


def has_unknown(asked: _Filter) -> bool:
    """Return whether a filter contains UNKNOWN's number, which Kafka treats as malformed."""
    return 0 in (asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type)
