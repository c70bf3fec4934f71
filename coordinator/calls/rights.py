"""The rights of clients: operations on resources. Kafka's words and their numbers on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

CLUSTER_NAME = "kafka-cluster"
"""The only name of a resource of the type CLUSTER."""


class Word(IntEnum):
    """A word of ACLs, with its number; numbers that Kafka does not know are UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> Word:  # noqa: ARG003  (enum's signature)
        return cls(0)


class ResourceType(Word):
    """What an ACL is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(Word):
    """What is done to a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


OPERATIONS: Mapping[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""The operations on a type of resource, for answers with the client's authorized operations (KIP-430)."""


class Client(NamedTuple):
    """The principal and host of a request."""

    principal: str
    """As ``User:alice``."""
    host: str
    """The address that it comes from."""


class Rights(Protocol):
    """Decides what clients may do; `loadwise.coordinator.authorization.authorizer.Authorizer` implements it."""

    def allows(self, who: Client, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Return whether a client may do this to the resource of this type and name."""

    def allows_some(self, who: Client, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether a client may do this to any resource of this type."""

    def operations(self, who: Client, resource_type: ResourceType, name: str) -> frozenset[Operation]:
        """Return all that a client may do to a resource."""


class Authorizing(Protocol):
    """What clients may do, for ``Security``; `loadwise.coordinator.Authorization` implements it."""

    @property
    def super_users(self) -> Sequence[str]:
        """Return the principals that may do everything."""
