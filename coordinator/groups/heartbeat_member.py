"""A member of a group whose members only send heartbeats: the same for share groups and streams groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class _Metadata(Protocol):
    @property
    def client_id(self) -> str: ...

    @property
    def client_host(self) -> str: ...


class _Assignment(Protocol):
    @property
    def member_id(self) -> str: ...


_MetadataT = TypeVar("_MetadataT", bound=_Metadata)
_AssignmentT = TypeVar("_AssignmentT", bound=_Assignment)


@dataclass(slots=True)
class HeartbeatMember(Generic[_MetadataT, _AssignmentT]):
    """One member; both halves are records, and each is replaced as a whole."""

    metadata: _MetadataT
    """What it has told of itself."""
    current: _AssignmentT
    """What it has been given."""

    @property
    def member_id(self) -> str:
        """Its id."""
        return self.current.member_id

    @property
    def instance_id(self) -> str | None:
        """Apache Kafka 4.3 has no static members in such groups."""
        return None

    @property
    def client_id(self) -> str:
        """The name that its client gives itself."""
        return self.metadata.client_id

    @property
    def client_host(self) -> str:
        """The address that it connects from."""
        return self.metadata.client_host
