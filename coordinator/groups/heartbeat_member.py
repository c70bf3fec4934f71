"""A member of a share group or a streams group."""

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
    """One member; both parts are records, and each is replaced as a whole."""

    metadata: _MetadataT
    """What it reports about itself."""
    current: _AssignmentT
    """Its assignment."""

    @property
    def member_id(self) -> str:
        """Return its id."""
        return self.current.member_id

    @property
    def instance_id(self) -> str | None:
        """Return None, because Apache Kafka 4.3 has no static members in such groups."""
        return None

    @property
    def client_id(self) -> str:
        """Return its client id."""
        return self.metadata.client_id

    @property
    def client_host(self) -> str:
        """Return its client's address."""
        return self.metadata.client_host
