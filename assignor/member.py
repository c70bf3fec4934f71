"""Members and partitions by name, and the order that Kafka has them in.

Kafka's order (``AbstractPartitionAssignor``, ``MemberInfo.compareTo``): static members first, by group instance id,
then dynamic ones by member id; strings compare by UTF-16 code unit, as Java's do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

NO_GENERATION = -1
"""The generation of a member that never was in the group, or lost its place (Kafka's ``DEFAULT_GENERATION``)."""


class TopicPartition(NamedTuple):
    """A partition by name. Equal to, and as good as, the clients' own ``TopicPartition`` tuples."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of a group as its leader sees it: what it subscribes to, and what it claims to own."""

    id: str
    """Member id, given by the coordinator; unique in the group."""
    topics: Sequence[str]
    """Topics subscribed to. A topic without metadata is tolerated: it is left out of the assignment."""
    owned: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Partitions that the member claims, by topic. Claims may be stale, doubled, or name partitions that are gone."""
    generation: int = NO_GENERATION
    """The generation at which the member was given ``owned``; `NO_GENERATION` if it is not known."""
    instance_id: str | None = None
    """Group instance id of a static member (KIP-345); None for a dynamic one."""
    rack: str | None = None
    """Rack of the member (KIP-881); None if it is not known."""
    capacity: float = 1.0
    """What the member can process relative to the others, or in the unit of the load a second. Finite, above 0."""
    capacity_known: bool = True
    """Whether ``capacity`` was given or measured. A guess says nothing about the member's speed."""


def utf16_order(text: str) -> bytes:
    """Sort key that orders strings as Java does, by UTF-16 code unit (U+1F600 comes before U+FF5E)."""
    return text.encode("utf-16-be", "surrogatepass")


def java_sorted(texts: Iterable[str]) -> list[str]:
    """Strings in Java's order; see `utf16_order`."""
    known = list(texts)
    return sorted(known, key=None if all(map(str.isascii, known)) else utf16_order)


def kafka_order(member: Member) -> tuple[bool, bytes, bytes]:
    """Sort key of Kafka's order of members."""
    instance = member.instance_id
    return (instance is None, b"" if instance is None else utf16_order(instance), utf16_order(member.id))
