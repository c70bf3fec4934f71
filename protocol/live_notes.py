"""What members of a ``weighted`` group tell each other beyond their partitions, so that its load stays even.

`MemberNotes`
    follow the capacity in `loadwise.protocol.user_data.MemberTerms`, from its version 1 on: what the member has
    measured of itself, what its leader has learned of it, and what its leader has asked it to remember.
`LeaderNotes`
    are the user data of the assignment that the leader gives each member.
`CommitNote`
    is the metadata of one of the offsets that a member commits: what it has measured of itself since it joined.

The broker keeps all of a group's bytes in one record, so `MemberNotes` take 165 bytes a member at most where the group
was rebalanced six times, and `LeaderNotes` less than 120. Newer versions append; readers of an older one ignore what
follows.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from loadwise.protocol import primitive
from loadwise.protocol.errors import MalformedBytesError
from loadwise.protocol.primitive import FLOAT64, INT16, INT32, Reader

_LEADER_VERSION = _PRICED_VERSION = 1
_AGES, _MOST_AGES = 6, 60
_NOTE = "loadwise:1 "
_OFF = 1
_GIVEN = 2
_PRICED = 4
_MOST_TOPICS = 8
"""The most topics for which a member reports its time per record."""
_TOOK = struct.Struct(">If")
_HEX = 16


class Price(NamedTuple):
    """What rebalances for the load have cost, and what the next one costs."""

    spent_s: float = 0.0
    """Seconds of standstill that the budget lacked after the last request."""
    times: float = 1.0
    """The price of the next rebalance, as a multiple of what it costs."""

    def encode(self) -> bytes:
        """Return its 16 bytes."""
        return FLOAT64.pack(self.spent_s) + FLOAT64.pack(self.times)

    @classmethod
    def read(cls, reader: Reader) -> Price:
        """Read it. Raises `MalformedBytesError`."""
        spent_s, times = reader.float64("standstill for rebalances"), reader.float64("price of a rebalance")
        if not (0 <= spent_s < math.inf and 1 <= times < math.inf):
            raise MalformedBytesError(f"a price of {times} after {spent_s} s of standstill; both must be finite")
        return cls(spent_s, times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The state for the next leader: the latest rebalances of the group for its load."""

    ages_ms: tuple[int, ...] = ()
    """How long ago each of the newest rebalances for the load was requested, the newest last."""
    price: Price | None = None
    """What the next rebalance costs; None from a leader of an older version."""

    def encode(self) -> bytes:
        """Return the ages, the newest six: leaders of older versions count them. `price` follows separately."""
        ages = self.ages_ms[-_AGES:]
        return INT16.pack(len(ages)) + b"".join(INT32.pack(_bounded(age)) for age in ages)

    @classmethod
    def read(cls, reader: Reader) -> Memory:
        """Read the ages. Raises `MalformedBytesError`."""
        count = reader.int16("number of rebalances for the load")
        if not 0 <= count <= _MOST_AGES:
            raise MalformedBytesError(f"{count} rebalances for the load are remembered; there can be 0 to {_MOST_AGES}")
        return cls(ages_ms=tuple(max(reader.int32("age of a rebalance"), 0) for _ in range(count)))

    def older(self, by_ms: int) -> Memory:
        """The same some time later."""
        return replace(self, ages_ms=tuple(age + by_ms for age in self.ages_ms))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberNotes:
    """What a member tells its leader when it joins."""

    capacity_given: bool = False
    """Whether the capacity of its terms was given by its user, and so stands."""
    off: bool = False
    """Whether it does not want to be rebalanced for the load; one such member is enough."""
    measured_per_s: float = 0.0
    """Records that it processes in a busy second, by its own measurement; 0 without one."""
    learned_per_s: float = 0.0
    """The same, as its last leader had learned it; 0 where that knew nothing."""
    memory: Memory = field(default_factory=Memory)
    """What its last leader asked it to remember."""
    took_s: Mapping[int, float] = field(default_factory=dict)
    """Topic, by its `checksum`, to the seconds that one of its records takes; what matters most comes first."""

    def encode(self) -> bytes:
        """Write it; of more than eight topics the first."""
        flags = _OFF * self.off + _GIVEN * self.capacity_given + _PRICED
        return (
            INT16.pack(flags)
            + FLOAT64.pack(self.measured_per_s)
            + FLOAT64.pack(self.learned_per_s)
            + self.memory.encode()
            + INT16.pack(min(len(self.took_s), _MOST_TOPICS))
            + b"".join(_TOOK.pack(*each) for each in islice(self.took_s.items(), _MOST_TOPICS))
            + (self.memory.price or Price()).encode()
        )

    @classmethod
    def read(cls, reader: Reader) -> MemberNotes:
        """Read it; older members have no times of records. Raises `MalformedBytesError`."""
        flags = reader.int16("flags of the member")
        measured_per_s, learned_per_s = reader.float64("measured capacity"), reader.float64("learned capacity")
        memory = Memory.read(reader)
        took_s = _read_took(reader) if reader.remaining else {}
        return cls(
            capacity_given=bool(flags & _GIVEN),
            off=bool(flags & _OFF),
            measured_per_s=measured_per_s,
            learned_per_s=learned_per_s,
            memory=replace(memory, price=Price.read(reader)) if flags & _PRICED else memory,
            took_s=took_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderNotes:
    """The leader's note to a member, with its partitions."""

    watcher: str = ""
    """Group instance id, or else member id, of the leader: it watches the group's load."""
    learned_per_s: float = 0.0
    """What the leader has learned this member can process, in records/s; 0 where it knows nothing."""
    memory: Memory = field(default_factory=Memory)
    """Kept until the next join."""

    def encode(self) -> bytes:
        """Write v1, which has the price."""
        head = INT16.pack(_LEADER_VERSION) + primitive.string(self.watcher)
        memory = self.memory.encode() + (self.memory.price or Price()).encode()
        return head + FLOAT64.pack(self.learned_per_s) + memory

    @classmethod
    def decode(cls, data: bytes) -> LeaderNotes:
        """Read any version. Raises `MalformedBytesError`."""
        reader = Reader(data)
        version = reader.int16("version of the leader's notes")
        if version < 0:
            raise MalformedBytesError(f"the leader's notes have version {version}; there is none below 0")
        watcher, learned_per_s = reader.string("name of the member that watches"), reader.float64("learned capacity")
        memory = Memory.read(reader)
        if version >= _PRICED_VERSION:
            memory = replace(memory, price=Price.read(reader))
        return cls(watcher=watcher, learned_per_s=learned_per_s, memory=memory)


class Compared(NamedTuple):
    """A leader's estimate of what its assignments are worth, in seconds of the group's arrivals."""

    lag_s: float
    """The highest lag of a member, a mean of the last minutes."""
    saved_s: float
    """How much lower it is than under ``sticky``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitNote:
    """What a member tells its leader with its commits: text of less than 230 bytes, as metadata of one offset."""

    member: str
    """The member's group instance id, or else its member id. Only a checksum of it is sent."""
    at_ms: int
    """When it was written, by the member's own clock: the newest of a member's notes counts."""
    measured_per_s: float
    """Records that the member processes in a busy second; 0 where that is not known."""
    took_s: Mapping[int, float] = field(default_factory=dict)
    """As in `MemberNotes`."""
    compared: Compared | None = None
    """Of the leader alone, for those who watch the group from outside."""

    def encode(self) -> str:
        """Write it; with a zero at its end, since confluent-kafka 2.16 reads metadata as a string of C, up to one."""
        took = "".join(f"{topic:x}={each:.3g} " for topic, each in islice(self.took_s.items(), _MOST_TOPICS))
        compared = "" if self.compared is None else "~{:.3g}~{:.3g} ".format(*self.compared)
        return f"{_NOTE}{checksum(self.member):08x} {self.at_ms} {self.measured_per_s:.6g} {took}{compared}\0"

    @classmethod
    def decode(cls, metadata: str, member: str) -> CommitNote | None:
        """Read what this member has written; None where another one has, or no member of ours."""
        if author(metadata) != checksum(member):
            return None
        try:
            _, at_ms, measured_per_s, *more = metadata.removeprefix(_NOTE).split(" ")
            took = (each.split("=") for each in more if "=" in each)
            took_s = {int(topic, _HEX): float(each) for topic, each in took}
            compared = [Compared(*map(float, each.split("~")[1:])) for each in more if each.startswith("~")]
            return cls(
                member=member,
                at_ms=int(at_ms),
                measured_per_s=float(measured_per_s),
                took_s=took_s,
                compared=compared[0] if compared else None,
            )
        except (ValueError, TypeError):
            return None


def is_note(metadata: str | None) -> bool:
    """Whether the metadata of an offset is a `CommitNote`, of this version or a newer one."""
    return metadata is not None and metadata.startswith(_NOTE)


def author(metadata: str) -> int | None:
    """The checksum of the member that wrote a `CommitNote`; None if the metadata is none."""
    if not is_note(metadata):
        return None
    try:
        return int(metadata.removeprefix(_NOTE).partition(" ")[0], _HEX)
    except ValueError:
        return None


def checksum(name: str) -> int:
    """CRC-32 of the name of a member or a topic, which stands for it."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass"))


def _read_took(reader: Reader) -> dict[int, float]:
    count = reader.int16("number of topics whose records were timed")
    if not 0 <= count <= _MOST_TOPICS:
        raise MalformedBytesError(f"records of {count} topics were timed; there can be 0 to {_MOST_TOPICS}")
    took = (_TOOK.unpack(reader.raw(_TOOK.size, "time of a topic's records")) for _ in range(count))
    return dict(took)


def _bounded(number: int) -> int:
    return min(max(number, 0), 2**31 - 1)
