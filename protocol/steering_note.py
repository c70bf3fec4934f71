"""The steering note: a plan for a consumer group, in the rack ids of members that own nothing.

The assignor ``loadwise`` of a broker reads it (KIP-848). The format is docs/steering-note.md.
"""

from __future__ import annotations

import base64
import hashlib
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from loadwise.protocol.errors import MalformedBytesError, UnencodableError

PARTS = 10
"""The most parts of a note."""
TOPIC_PREFIX = "loadwise~steer~"
TOPICS = f"{TOPIC_PREFIX}0", f"{TOPIC_PREFIX}1"
"""What steering members subscribe to: no topic may have such a name. A change makes the broker assign again."""
PART_CHARS = 30_000
"""The longest rack id; a Kafka string has at most 32,767 bytes."""
UNOWNED = 0xFFFF
"""The owner of a partition that has none."""
_MOST_PARTITIONS = 5_000_000
_MOST_BODY = 16 << 20
_LARGEST = 1 << 30  # the largest weight and capacity of a note
_MARK = "loadwise-plan:1"
_PART = re.compile(rf"{_MARK} (0|[1-9]\d{{0,18}}) (\d) ([1-9]|10) ([0-9a-f]{{8}}) ([A-Za-z0-9+/]*)", re.ASCII)
_DATA_CHARS = (PART_CHARS - len(f"{_MARK} {2**63} 9 10 ffffffff ")) // 4 * 4
_COUNT, _MEMBER, _TOPIC = struct.Struct(">i"), struct.Struct(">QI"), struct.Struct(">16si")


class Part(NamedTuple):
    """A part of a note, as in a rack id."""

    sequence: int
    number: int
    """Its place among the parts, from 0."""
    of: int
    """How many parts there are."""
    checksum: str
    data: bytes

    @classmethod
    def decode(cls, rack_id: str) -> Part | None:
        """Read a rack id; None if it is no part of a note."""
        found = _PART.fullmatch(rack_id) if len(rack_id) <= PART_CHARS else None
        if found is None:
            return None
        sequence, number, of, checksum, data = found.groups()
        if int(sequence) >= 2**63 or int(number) >= int(of) or len(data) % 4 == 1:
            return None
        return cls(int(sequence), int(number), int(of), checksum, base64.b64decode(data + "=" * (-len(data) % 4)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The content of a note."""

    epoch: int
    """The group epoch of which it was made."""
    capacities: Mapping[int, int]
    """The capacity of each member, by the hash of its name, in ascending order."""
    partitions: Mapping[bytes, int]
    """Topic id to its number of partitions, in ascending order."""
    owners: Sequence[int]
    """The owner of each partition, by topic and partition: a place in `capacities`, or `UNOWNED`."""
    weights: Sequence[int]
    """The weight of each partition, at least 1."""

    def encode(self, sequence: int) -> list[str]:
        """Return the rack ids that carry it; weights get coarser if the note would be too long.

        Raises `UnencodableError` if that does not suffice.
        """
        members = b"".join(_MEMBER.pack(name, capacity) for name, capacity in sorted(self.capacities.items()))
        topics = b"".join(_TOPIC.pack(topic, number) for topic, number in sorted(self.partitions.items()))
        head = _COUNT.pack(self.epoch) + _COUNT.pack(len(self.capacities)) + members
        high, low = (bytes(owner >> bits & 0xFF for owner in self.owners) for bits in (8, 0))
        head += _COUNT.pack(len(self.partitions)) + topics + high + low
        codes = bytes(map(code, self.weights))
        for coarse in (1, 2, 4, 8):
            data = zlib.compress(head + bytes(each // coarse * coarse for each in codes), 9)
            text = base64.b64encode(data).rstrip(b"=").decode()
            if len(text) <= PARTS * _DATA_CHARS:
                break
        else:
            raise UnencodableError(
                f"a plan for {len(self.owners):,} partitions and {len(self.capacities):,} members takes"
                f" {len(text):,} bytes; a note has at most {PARTS * _DATA_CHARS:,}"
            )
        checksum = f"{zlib.crc32(data):08x}"
        parts = [text[start : start + _DATA_CHARS] for start in range(0, len(text), _DATA_CHARS)]
        return [f"{_MARK} {sequence} {index} {len(parts)} {checksum} {part}" for index, part in enumerate(parts)]

    @classmethod
    def decode(cls, data: bytes) -> Plan:
        """Read the joined data of all parts. Raises `MalformedBytesError`."""
        body = _Body(_inflated(data))
        epoch, count = body.count("epoch"), body.count("number of members", 0xFFFF)
        members = body.table(_MEMBER, count, "members")
        if not all(capacity for _, capacity in members):
            raise MalformedBytesError("a member has no capacity")
        topics = body.table(_TOPIC, body.count("number of topics"), "topics")
        if min((number for _, number in topics), default=0) < 0:
            raise MalformedBytesError("a topic has a negative number of partitions")
        partitions = sum(number for _, number in topics)
        if partitions > _MOST_PARTITIONS:
            raise MalformedBytesError(f"{partitions} partitions; at most {_MOST_PARTITIONS}")
        high, low, codes = (body.take(partitions, what) for what in ("owners", "owners", "weights"))
        if body.rest:
            raise MalformedBytesError(f"{body.rest} bytes after the weights")
        owners = [upper << 8 | lower for upper, lower in zip(high, low, strict=True)]
        if any(count <= owner != UNOWNED for owner in set(owners)):
            raise MalformedBytesError(f"an owner that is none of the {count} members")
        weights = [max(_VALUES[each], 1) for each in codes]
        return cls(epoch=epoch, capacities=dict(members), partitions=dict(topics), owners=owners, weights=weights)


def newest_plan(rack_ids: Iterable[str]) -> Plan | None:
    """Return the complete plan with the highest sequence; None without one.

    Rack ids come in the order of member ids.
    """
    return next((plan for plan, _, _ in _complete(rack_ids)), None)


def newest_parts(rack_ids: Iterable[str]) -> tuple[int, list[str]]:
    """Return the sequence of the plan that `newest_plan` returns, and its rack ids in order; 0 and none without one."""
    return next(((sequence, parts) for _, sequence, parts in _complete(rack_ids)), (0, []))


def _complete(rack_ids: Iterable[str]) -> Iterator[tuple[Plan, int, list[str]]]:
    found: dict[tuple[int, str, int], dict[int, tuple[bytes, str]]] = {}
    for rack_id in rack_ids:
        if (part := Part.decode(rack_id)) is not None:
            key = part.sequence, part.checksum, part.of
            found.setdefault(key, {}).setdefault(part.number, (part.data, rack_id))
    for (sequence, checksum, of), parts in sorted(found.items(), reverse=True, key=lambda each: each[0]):
        in_order = [parts[number] for number in sorted(parts)]
        data = b"".join(part for part, _ in in_order)
        if len(parts) == of and f"{zlib.crc32(data):08x}" == checksum:
            try:
                yield Plan.decode(data), sequence, [rack_id for _, rack_id in in_order]
            except MalformedBytesError:  # as without it: the broker must go on
                continue


def name_hash(member_id: str, instance_id: str | None) -> int:
    """Return the hash of a member's name: of its group instance id, or of its member id."""
    name = f"m:{member_id}" if instance_id is None else f"i:{instance_id}"
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])


def scaled(values: Iterable[float]) -> list[int]:
    """Return weights or capacities for a note, int from 1 to 2**30, in proportion to these values."""
    given = list(values)
    highest = max(given, default=0.0)
    return [max(round(value / highest * _LARGEST), 1) for value in given] if highest > 0 else [1] * len(given)


def code(weight: int) -> int:
    """Return the byte whose value is next to a weight: 3 bits after the first one, and a shift."""
    if weight < 8:
        return weight
    shift = weight.bit_length() - 4
    return ((shift + 1) << 3) + round(weight / (1 << shift)) - 8


_VALUES = [each & 7 if each < 8 else (8 + (each & 7)) << ((each >> 3) - 1) for each in range(256)]


class _Body:
    """Bytes that are taken one after the other. All raise `MalformedBytesError`."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def rest(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int, what: str) -> bytes:
        if size > self.rest:
            raise MalformedBytesError(f"{what}: {size} bytes, and {self.rest} are left")
        self._at += size
        return self._data[self._at - size : self._at]

    def count(self, what: str, most: int = 0x7FFFFFFF) -> int:
        (count,) = _COUNT.unpack(self.take(_COUNT.size, what))
        if not 0 <= count <= most:
            raise MalformedBytesError(f"{what}: {count}, and at most {most}")
        return int(count)

    def table(self, row: struct.Struct, rows: int, what: str) -> list[tuple[Any, int]]:
        table = list(row.iter_unpack(self.take(rows * row.size, what)))
        if any(first[0] >= second[0] for first, second in pairwise(table)):
            raise MalformedBytesError(f"{what}: not in ascending order")
        return table


def _inflated(data: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        body = stream.decompress(data, _MOST_BODY + 1)
    except zlib.error as error:
        raise MalformedBytesError(f"no zlib stream: {error}") from error
    if not stream.eof or stream.unused_data or len(body) > _MOST_BODY:
        raise MalformedBytesError(f"no zlib stream of at most {_MOST_BODY} bytes")
    return body
