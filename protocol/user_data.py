"""The user data of the sticky assignors: what a member remembers of its last assignment, and what else it sends.

`StickyUserData`
    ``StickyAssignor``: ARRAY[STRING topic, ARRAY[int32 partition]], and since v1 int32 generation. Java's form has no
    version field, so readers try v1, then v0; trailing bytes are ignored. kafka-python's assignor alone writes an int16
    version (1) before it, from which Java and every client that reads Java's form can take nothing. We write Java's v1
    and read all three.
`CooperativeStickyUserData`
    ``CooperativeStickyAssignor``: int32 generation, because a subscription before v2 has no place for it.
`MemberTerms`
    Ours, for the ``weighted`` strategies: what the member can do. It follows the sticky bytes, where every other reader
    ignores it: int16 version, float64 capacity, from version 1 on `loadwise.protocol.live_notes.MemberNotes`. Newer
    versions append; readers of an older one ignore what follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from loadwise.protocol import primitive
from loadwise.protocol.consumer import NO_GENERATION
from loadwise.protocol.errors import MalformedBytesError
from loadwise.protocol.live_notes import MemberNotes
from loadwise.protocol.primitive import FLOAT64, INT16, INT32, Names, Reader

_KAFKA_PYTHON_VERSION = 1
_TERMS_VERSION = 1
_WITH_NOTES = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberTerms:
    """What a member of a ``weighted`` group sends beside its partitions."""

    capacity: float = 1.0
    """What the member can process relative to the others, or in the unit of the load. Any float64 can be read."""

    notes: MemberNotes | None = None
    """What else the member tells, from version 1 on; None from an older member."""

    def encode(self) -> bytes:
        """Write v1, or v0 where there are no notes."""
        if self.notes is None:
            return INT16.pack(0) + FLOAT64.pack(self.capacity)
        return INT16.pack(_TERMS_VERSION) + FLOAT64.pack(self.capacity) + self.notes.encode()

    @classmethod
    def read(cls, reader: Reader) -> MemberTerms | None:
        """Read what follows the sticky bytes; None where nothing does. Raises `MalformedBytesError`."""
        if not reader.remaining:
            return None
        version = reader.int16("version of the member's terms")
        if version < 0:
            raise MalformedBytesError(f"the member's terms have version {version}; there is none below 0")
        capacity = reader.float64("capacity")
        return cls(capacity=capacity, notes=MemberNotes.read(reader) if version >= _WITH_NOTES else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StickyUserData:
    """What an eager sticky member had before it revoked everything to join."""

    owned: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Partitions by topic."""
    generation: int = NO_GENERATION
    """The generation that gave them."""
    terms: MemberTerms | None = None
    """The member's terms, in a ``weighted`` group."""

    def encode(self) -> bytes:
        """Write Java's v1, and the terms if there are any."""
        terms = b"" if self.terms is None else self.terms.encode()
        return primitive.topic_partitions(self.owned) + INT32.pack(self.generation) + terms

    @classmethod
    def decode(cls, data: bytes, names: Names | None = None) -> StickyUserData:
        """Read v1, v0 or kafka-python's form. Raises `MalformedBytesError` where it is none of them.

        ``names`` are those of the group's other members.
        A form that takes all the bytes is preferred; failing that, trailing bytes are ignored as Java does.
        """
        readings: list[StickyUserData] = []
        for form in (_v1, _kafka_python, _v0):
            reader = Reader(data, names)
            try:
                reading = form(reader)
            except MalformedBytesError:
                continue
            if not reader.remaining:
                return reading
            readings.append(reading)
        if readings:
            return readings[0]
        raise MalformedBytesError(f"{len(data)} bytes of user data are no StickyAssignor's, of any known version")

    @classmethod
    def decode_with_terms(cls, data: bytes, names: Names | None = None) -> StickyUserData:
        """Read v1 and the terms behind it, as a ``weighted`` member writes them. Raises `MalformedBytesError`."""
        reader = Reader(data, names)
        sticky = _v1(reader)
        return cls(owned=sticky.owned, generation=sticky.generation, terms=MemberTerms.read(reader))


@dataclass(frozen=True, slots=True, kw_only=True)
class CooperativeStickyUserData:
    """The generation of a cooperative sticky member, for readers of subscriptions before v2."""

    generation: int = NO_GENERATION
    """The generation in which the member got its partitions."""
    terms: MemberTerms | None = None
    """The member's terms, in a ``cooperative-weighted`` group."""

    def encode(self) -> bytes:
        """Write Java's v0, and the terms if there are any."""
        return INT32.pack(self.generation) + (b"" if self.terms is None else self.terms.encode())

    @classmethod
    def decode(cls, data: bytes) -> CooperativeStickyUserData:
        """Read the generation; what follows is ignored, as Java does. Raises `MalformedBytesError`."""
        return cls(generation=Reader(data).int32("generation"))

    @classmethod
    def decode_with_terms(cls, data: bytes) -> CooperativeStickyUserData:
        """Read the generation and the terms behind it. Raises `MalformedBytesError`."""
        reader = Reader(data)
        return cls(generation=reader.int32("generation"), terms=MemberTerms.read(reader))


def _v1(reader: Reader) -> StickyUserData:
    owned = reader.topic_partitions("previous assignment")
    return StickyUserData(owned=owned, generation=reader.int32("generation"))


def _v0(reader: Reader) -> StickyUserData:
    return StickyUserData(owned=reader.topic_partitions("previous assignment"))


def _kafka_python(reader: Reader) -> StickyUserData:
    version = reader.int16("kafka-python's version")
    if version != _KAFKA_PYTHON_VERSION:
        raise MalformedBytesError(f"kafka-python writes version {_KAFKA_PYTHON_VERSION}, not {version}")
    return _v1(reader)
