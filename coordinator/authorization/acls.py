"""ACLs, and filters over them.

Mirrors Kafka's ``AclBinding``, ``AclBindingFilter`` and ``ResourcePatternFilter``. The numbers are those on the wire.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from loadwise.coordinator.calls.rights import CLUSTER_NAME, Operation, ResourceType, Word
from loadwise.coordinator.errors import BadSecurityError

WILDCARD = "*"
"""As a name: every resource. As a host: every host."""
EVERYBODY = "User:*"
"""The principal of an ACL for everybody."""


class PatternType(Word):
    """How an ACL names resources."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    """In filters: whatever applies to a resource of this name."""
    LITERAL = 3
    PREFIXED = 4


class Permission(Word):
    """Whether an ACL grants or takes."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


_NO_VALUES = ("UNKNOWN", "ANY")
_W = TypeVar("_W", bound=Word)


class Acl(NamedTuple):
    """One rule: a principal, coming from a host, may or may not do something to some resources."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType
    """LITERAL or PREFIXED."""
    principal: str
    """As ``User:alice``, or `EVERYBODY`."""
    host: str
    """An address, or `WILDCARD`."""
    operation: Operation
    permission: Permission

    @classmethod
    def of(
        cls,
        principal: str,
        operation: str,
        resource_type: str,
        name: str = CLUSTER_NAME,
        *,
        pattern_type: str = "LITERAL",
        host: str = WILDCARD,
        permission: str = "ALLOW",
    ) -> Acl:
        """An ACL by Kafka's words: ``Acl.of("User:orders", "READ", "TOPIC", "orders-", pattern_type="PREFIXED")``.

        Raises `BadSecurityError` for words that are none, and for an ACL that cannot be.
        """
        acl = cls(
            _named(ResourceType, resource_type),
            name,
            _named(PatternType, pattern_type),
            principal,
            host,
            _named(Operation, operation),
            _named(Permission, permission),
        )
        problem = acl.problem()
        if problem is not None:
            raise BadSecurityError(f"{acl} is not valid: {problem}")
        return acl

    def problem(self) -> str | None:
        """Why there can be no such ACL, in Kafka's words; None if there can be."""
        for what, value in (("resourceType", self.resource_type), ("operation", self.operation)):
            if value.name in _NO_VALUES:
                return f"Invalid {what} {value.name}"
        if self.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
            return f"Invalid patternType {self.pattern_type.name}"
        if self.permission.name in _NO_VALUES:
            return f"Invalid permissionType {self.permission.name}"
        if self.resource_type is ResourceType.CLUSTER and self.name != CLUSTER_NAME:
            return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        if not self.name:
            return "Invalid empty resource name"
        if ":" not in self.principal:
            return (
                f"Could not parse principal from `{self.principal}` "
                "(no colon is present separating the principal type from the principal name)"
            )
        return None

    def covers(self, name: str) -> bool:
        """Whether this ACL is about a resource of this name."""
        if self.pattern_type is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)


class AclFilter(NamedTuple):
    """Which ACLs are meant; None and ANY let everything through."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def problem(self) -> str | None:
        """Why no ACL can be meant, in Kafka's words; None if one can be."""
        if ResourceType.UNKNOWN is self.resource_type or PatternType.UNKNOWN is self.pattern_type:
            return "Unknown patternFilter."
        if Operation.UNKNOWN is self.operation or Permission.UNKNOWN is self.permission:
            return "Unknown entryFilter."
        return None

    def matches(self, acl: Acl) -> bool:
        """Whether an ACL is meant."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type is PatternType.MATCH:
            return acl.covers(self.name)
        return self.name == acl.name


def _named(words: type[_W], word: str) -> _W:
    try:
        return words[word.upper()]
    except KeyError:
        known = ", ".join(each.name for each in words if each.name not in _NO_VALUES)
        raise BadSecurityError(f"an ACL has {word!r} as its {words.__name__}; it takes {known}") from None
