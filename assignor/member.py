"""Members and partitions by name, and Kafka's order of both.

Kafka's order (``AbstractPartitionAssignor``, ``MemberInfo.compareTo``): static members first, by group instance id,
then dynamic ones by member id; strings compare by UTF-16 code unit, as Java's do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

NO_GENERATION = -1
"""The generation of a member that never joined or lost its place (Kafka's ``DEFAULT_GENERATION``)."""


class TopicPartition(NamedTuple):
    """A partition by name. Equal to and interchangeable with the clients' own ``TopicPartition`` tuples."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A group member as its leader sees it: its subscription and the partitions that it claims to own."""

    id: str
    """Member id, assigned by the coordinator; unique in the group."""
    topics: Sequence[str]
    """Topics subscribed to. Topics without metadata are left out of the assignment."""
    owned: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Partitions that the member claims, by topic. Claims may be stale, repeated, or name deleted partitions."""
    generation: int = NO_GENERATION
    """The generation in which the member got ``owned``; `NO_GENERATION` if unknown."""
    instance_id: str | None = None
    """Group instance id of a static member (KIP-345); None for a dynamic one."""
    rack: str | None = None
    """Rack of the member (KIP-881); None if unknown."""
    capacity: float = 1.0
    """The member's capacity, relative to the others or in the unit of the load a second. Finite, above 0."""
    capacity_known: bool = True
    """Whether ``capacity`` was set or measured. A default says nothing about the member's speed."""


def utf16_order(text: str) -> bytes:
    """Return a sort key that orders strings as Java does, by UTF-16 code unit (U+1F600 before U+FF5E)."""
    return text.encode("utf-16-be", "surrogatepass")


def java_sorted(texts: Iterable[str]) -> list[str]:
    """Return strings in Java's order; see `utf16_order`."""
    known = list(texts)
    return sorted(known, key=None if all(map(str.isascii, known)) else utf16_order)


def kafka_order(member: Member) -> tuple[bool, bytes, bytes]:
    """Return a sort key for Kafka's order of members."""
    instance = member.instance_id
    return (instance is None, b"" if instance is None else utf16_order(instance), utf16_order(member.id))
