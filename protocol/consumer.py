"""The consumer protocol: the bytes inside JoinGroup and SyncGroup that members of a group write to each other.

The broker does not look into them. A `Subscription` is what a member sends when it joins, an `Assignment` what
the leader answers it. Kafka's class is ``ConsumerProtocol``, its schemas ``ConsumerProtocolSubscription.json`` and
``ConsumerProtocolAssignment.json``:

====== =============================================== ==========================================
       Subscription                                    Assignment
====== =============================================== ==========================================
v0     topics, user data                               partitions, user data
v1     and owned partitions (KIP-429)                  the same
v2     and the generation they date from (KIP-792)     the same
v3     and the member's rack (KIP-881)                 the same
====== =============================================== ==========================================

We write v3, with topics and partitions sorted as the Java client sorts them, and read every version: newer ones as v3,
with what follows ignored, which is what makes the protocol extensible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from loadwise.protocol import primitive
from loadwise.protocol.errors import MalformedBytesError
from loadwise.protocol.primitive import INT16, INT32, Names, Reader

PROTOCOL_TYPE = "consumer"
"""The protocol type of a group of consumers in JoinGroup; Kafka Connect's groups have another."""

NEWEST_VERSION = 3

NO_GENERATION = -1
"""The generation of a member that never was in the group, or lost its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What a member sends when it joins a group."""

    topics: Sequence[str] = ()
    """Topics that the member wants to read."""
    user_data: bytes | None = None
    """Bytes of the assignor's own: see `loadwise.protocol.user_data`. None where the assignor has none."""
    owned: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Partitions that the member still holds, by topic; an eager member has given all up. Since v1."""
    generation: int = NO_GENERATION
    """The generation in which the member got its partitions. Since v2."""
    rack: str | None = None
    """The member's rack (``client.rack``), None where it has none. Since v3."""

    def encode(self) -> bytes:
        """Write v3, as the Java client does. Raises `UnencodableError` for a string that has no form on the wire."""
        owned = {topic: sorted(self.owned[topic]) for topic in sorted(self.owned, key=_java_order)}
        return b"".join(
            (
                INT16.pack(NEWEST_VERSION),
                primitive.strings(sorted(self.topics, key=_java_order)),
                primitive.nullable_bytes(self.user_data),
                primitive.topic_partitions(owned),
                INT32.pack(self.generation),
                primitive.string(self.rack),
            )
        )

    @classmethod
    def decode(cls, data: bytes, names: Names | None = None) -> Subscription:
        """Read any version; ``names`` are those of the group's other members. Raises `MalformedBytesError`."""
        reader = Reader(data, names)
        version = _version(reader, "subscription")
        return cls(
            topics=reader.strings("topics", "topic"),
            user_data=reader.nullable_bytes("user data"),
            owned=reader.topic_partitions("owned partitions") if version >= 1 else {},
            generation=reader.int32("generation") if version >= 2 else NO_GENERATION,
            rack=reader.nullable_string("rack") if version >= 3 else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What the leader gives a member."""

    partitions: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Partitions by topic."""
    user_data: bytes | None = None
    """Bytes of the assignor's own; none of Kafka's assignors has any."""

    def encode(self) -> bytes:
        """Write v3, in the order given. Raises `UnencodableError` for a string that has no form on the wire."""
        return b"".join(
            (
                INT16.pack(NEWEST_VERSION),
                primitive.topic_partitions(self.partitions),
                primitive.nullable_bytes(self.user_data),
            )
        )

    @classmethod
    def decode(cls, data: bytes) -> Assignment:
        """Read any version. Raises `MalformedBytesError`.

        No bytes at all are no partitions: that is how the broker answers a member whom the leader forgot.
        """
        if not data:
            return cls()
        reader = Reader(data)
        _version(reader, "assignment")
        return cls(partitions=reader.topic_partitions("partitions"), user_data=reader.nullable_bytes("user data"))


def _version(reader: Reader, what: str) -> int:
    version = reader.int16(f"version of the {what}")
    if version < 0:
        raise MalformedBytesError(f"the {what} has version {version}; there is none below 0")
    return version


def _java_order(text: str) -> bytes:
    """Sort key that orders strings as Java does, by UTF-16 code unit."""
    return text.encode("utf-16-be", "surrogatepass")
