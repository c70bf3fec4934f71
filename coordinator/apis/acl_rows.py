"""No API of its own: ACLs and filters as DescribeAcls, CreateAcls and DeleteAcls have them on the wire."""

from __future__ import annotations

from loadwise.coordinator.authorization.acls import AclFilter, Operation, PatternType, Permission, ResourceType
from loadwise.coordinator.calls import Message

NO_AUTHORIZER = "No Authorizer is configured."
"""Why there are no ACLs."""


def filter_of(asked: Message) -> AclFilter:
    """The filter of a request; numbers that Kafka does not know become UNKNOWN."""
    return AclFilter(
        ResourceType(asked.resource_type_filter),
        asked.resource_name_filter,
        PatternType(asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        Operation(asked.operation),
        Permission(asked.permission_type),
    )


def has_unknown(asked: Message) -> bool:
    """Whether a filter has the number of UNKNOWN: for Kafka, that is no request."""
    return 0 in (asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type)
