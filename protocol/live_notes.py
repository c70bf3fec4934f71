"""What members of a ``weighted`` group tell each other beyond their partitions, so that its load stays even.

`MemberNotes`
    follow the capacity in `loadwise.protocol.user_data.MemberTerms`, from its version 1 on: what the member has
    measured of itself, what its leader has learned of it, and what its leader has asked it to remember.
`LeaderNotes`
    are the user data of the assignment that the leader gives each member.
`CommitNote`
    is the metadata of one of the offsets that a member commits: what it has measured of itself since it joined.

The broker keeps all of a group's bytes in one record, so each of them takes less than a hundred bytes a member. Newer
versions append; readers of an older one ignore what follows.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from loadwise.protocol import primitive
from loadwise.protocol.errors import MalformedBytesError
from loadwise.protocol.primitive import FLOAT64, INT16, INT32, Reader

_LEADER_VERSION = 0
_MOST_AGES = 60
_NOTE = "loadwise:1 "
_OFF = 1
_GIVEN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the next leader must know: how often the group was rebalanced for its load, and whether it helped."""

    ages_ms: tuple[int, ...] = ()
    """How long ago each rebalance for the load was asked for, within the last hour."""
    back_off_ms: int = 0
    """How long no other is asked for after one that did not help."""
    left_ms: int = 0
    """How much of that is left."""
    gain: float = 0.0
    """What the last one was to gain, in utilisation."""

    def encode(self) -> bytes:
        """Write it; of more than sixty rebalances the newest."""
        ages = self.ages_ms[-_MOST_AGES:]
        return b"".join(
            (
                INT16.pack(len(ages)),
                *(INT32.pack(_bounded(age)) for age in ages),
                INT32.pack(_bounded(self.back_off_ms)),
                INT32.pack(_bounded(self.left_ms)),
                FLOAT64.pack(self.gain),
            )
        )

    @classmethod
    def read(cls, reader: Reader) -> Memory:
        """Read it. Raises `MalformedBytesError`."""
        count = reader.int16("number of rebalances for the load")
        if not 0 <= count <= _MOST_AGES:
            raise MalformedBytesError(f"{count} rebalances for the load are remembered; there can be 0 to {_MOST_AGES}")
        return cls(
            ages_ms=tuple(max(reader.int32("age of a rebalance"), 0) for _ in range(count)),
            back_off_ms=max(reader.int32("back-off"), 0),
            left_ms=max(reader.int32("rest of the back-off"), 0),
            gain=reader.float64("gain of the last rebalance"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberNotes:
    """What a member tells its leader when it joins."""

    capacity_given: bool = False
    """Whether the capacity of its terms was given by its user, and so stands."""
    off: bool = False
    """Whether it does not want to be rebalanced for the load; one such member is enough."""
    measured_per_s: float = 0.0
    """Records that it processes in a busy second, as measured by itself; 0 where it could not."""
    learned_per_s: float = 0.0
    """The same, as its last leader had learned it; 0 where that knew nothing."""
    memory: Memory = field(default_factory=Memory)
    """What its last leader asked it to remember."""

    def encode(self) -> bytes:
        """Write it."""
        flags = _OFF * self.off + _GIVEN * self.capacity_given
        return (
            INT16.pack(flags)
            + FLOAT64.pack(self.measured_per_s)
            + FLOAT64.pack(self.learned_per_s)
            + self.memory.encode()
        )

    @classmethod
    def read(cls, reader: Reader) -> MemberNotes:
        """Read it. Raises `MalformedBytesError`."""
        flags = reader.int16("flags of the member")
        return cls(
            capacity_given=bool(flags & _GIVEN),
            off=bool(flags & _OFF),
            measured_per_s=reader.float64("measured capacity"),
            learned_per_s=reader.float64("learned capacity"),
            memory=Memory.read(reader),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderNotes:
    """What the leader tells a member with its partitions."""

    watcher: str = ""
    """Group instance id, or else member id, of the leader: it watches the group's load."""
    learned_per_s: float = 0.0
    """What the leader has learned this member can process, in records/s; 0 where it knows nothing."""
    memory: Memory = field(default_factory=Memory)
    """To be remembered until the next join."""

    def encode(self) -> bytes:
        """Write v0."""
        head = INT16.pack(_LEADER_VERSION) + primitive.string(self.watcher)
        return head + FLOAT64.pack(self.learned_per_s) + self.memory.encode()

    @classmethod
    def decode(cls, data: bytes) -> LeaderNotes:
        """Read any version. Raises `MalformedBytesError`."""
        reader = Reader(data)
        version = reader.int16("version of the leader's notes")
        if version < 0:
            raise MalformedBytesError(f"the leader's notes have version {version}; there is none below 0")
        return cls(
            watcher=reader.string("name of the member that watches"),
            learned_per_s=reader.float64("learned capacity"),
            memory=Memory.read(reader),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitNote:
    """What a member tells its leader with its commits: text of less than 64 bytes, as metadata of one offset."""

    member: str
    """The member's group instance id, or else its member id. Only a checksum of it is sent."""
    at_ms: int
    """When it was written, by the member's own clock: the newest of a member's notes counts."""
    measured_per_s: float
    """Records that the member processes in a busy second."""

    def encode(self) -> str:
        """Write it; with a zero at its end, since confluent-kafka 2.16 reads metadata as a string of C, up to one."""
        return f"{_NOTE}{_checksum(self.member)} {self.at_ms} {self.measured_per_s:.6g} \0"

    @classmethod
    def decode(cls, metadata: str, member: str) -> CommitNote | None:
        """Read what this member has written; None where another one has, or no member of ours."""
        if not is_note(metadata):
            return None
        checksum, _, rest = metadata.removeprefix(_NOTE).partition(" ")
        try:
            at_ms, measured_per_s = rest.split(" ")[:2]
            note = cls(member=member, at_ms=int(at_ms), measured_per_s=float(measured_per_s))
        except ValueError:
            return None
        return note if checksum == _checksum(member) else None


def is_note(metadata: str | None) -> bool:
    """Whether the metadata of an offset is a `CommitNote`, of this version or a newer one, and nobody else's."""
    return metadata is not None and metadata.startswith(_NOTE)


def _checksum(name: str) -> str:
    return f"{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}"


def _bounded(number: int) -> int:
    return min(max(number, 0), 2**31 - 1)
