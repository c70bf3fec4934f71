"""Kafka's primitive types as the consumer protocol uses them, big endian, in their old (not "flexible") forms.

STRING is an int16 length and UTF-8, NULLABLE_STRING the same with -1 for null, BYTES an int32 length (-1: null) and the
bytes, ARRAY an int32 count and the elements. Kafka's classes: ``org.apache.kafka.common.protocol.types.Type`` and
``ByteBufferAccessor``.

Partition numbers are read and written an array at once: a member may own tens of thousands of them. Not by numpy, which
is slower to import than a coordinator is to start.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from loadwise.protocol.errors import MalformedBytesError, UnencodableError

INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
FLOAT64 = struct.Struct(">d")
_SIZE_AND_FIRST = struct.Struct(">Ii")
"""How many partitions a topic has, and the first of them."""
_FEW = tuple(struct.Struct(f">{count}i").unpack_from for count in range(16))
"""Readers for a few partition numbers, since members own few partitions of most topics."""
_NULL_LENGTH = -1


class Names:
    """What the members of a group have named so far: they name the same topics, often hundreds of them.

    Readers that share it recognise by their bytes the names and the lists of names that one of them has read.
    """

    __slots__ = ("lists", "texts")
    MOST_LISTS = 8

    def __init__(self) -> None:
        self.texts: dict[bytes, str] = {}
        """Strings by their bytes on the wire, length included."""
        self.lists: list[tuple[bytes, list[str]]] = []
        """ARRAY[STRING]s and their bytes, up to a maximum."""


class Reader:
    """A position in bytes, and the values that follow it. Every method raises `MalformedBytesError`."""

    __slots__ = ("_data", "_names", "offset")

    def __init__(self, data: bytes, names: Names | None = None) -> None:
        self._data = bytes(data)
        self._names = Names() if names is None else names
        self.offset = 0

    @property
    def remaining(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self.offset

    def fixed(self, form: struct.Struct, what: str) -> int | float:
        """Read one number."""
        if self.remaining < form.size:
            raise MalformedBytesError(
                f"{what} at byte {self.offset} needs {form.size} bytes, but {self.remaining} are left"
            )
        value: int | float = form.unpack_from(self._data, self.offset)[0]
        self.offset += form.size
        return value

    def int16(self, what: str) -> int:
        """Read an int16."""
        return int(self.fixed(INT16, what))

    def int32(self, what: str) -> int:
        """Read an int32."""
        return int(self.fixed(INT32, what))

    def float64(self, what: str) -> float:
        """Read a float64."""
        return float(self.fixed(FLOAT64, what))

    def raw(self, length: int, what: str) -> bytes:
        """Read a number of bytes."""
        if not 0 <= length <= self.remaining:
            raise MalformedBytesError(
                f"{what} at byte {self.offset} claims {length} bytes, but {self.remaining} are left"
            )
        self.offset += length
        return self._data[self.offset - length : self.offset]

    def string(self, what: str) -> str:
        """Read a STRING."""
        text = self.nullable_string(what)
        if text is None:
            raise MalformedBytesError(f"{what} at byte {self.offset - INT16.size} is null")
        return text

    def nullable_string(self, what: str) -> str | None:
        """Read a NULLABLE_STRING; as Kafka does, any negative length is null."""
        length = self.int16(what)
        if length < 0:
            return None
        try:
            return self.raw(length, what).decode()
        except UnicodeDecodeError as error:
            raise MalformedBytesError(f"{what} before byte {self.offset} is not UTF-8: {error.reason}") from error

    def nullable_bytes(self, what: str) -> bytes | None:
        """Read nullable BYTES; as Kafka does, any negative length is null."""
        length = self.int32(what)
        return None if length < 0 else self.raw(length, what)

    def count(self, what: str, least_bytes: int) -> int:
        """Read the count of an ARRAY; each element takes at least ``least_bytes``."""
        count = self.int32(what)
        if not 0 <= count * least_bytes <= self.remaining:
            raise MalformedBytesError(
                f"{what} before byte {self.offset} claims {count} elements, but {self.remaining} bytes are left"
            )
        return count

    def topic_partitions(self, what: str) -> dict[str, list[int]]:
        """Read ARRAY[STRING topic, ARRAY[int32 partition]]; a topic that comes twice is read as one."""
        start = self.offset
        count = self.count(what, INT16.size + INT32.size)
        try:
            return self._topic_partitions(count)
        except (struct.error, ValueError, IndexError):
            self.offset = start  # read again with care, either to name what is wrong or to accept what Kafka accepts
            return self._odd_topic_partitions(what)

    def _topic_partitions(self, count: int) -> dict[str, list[int]]:
        """Read what is as it should be, in the least time: a group of a thousand members has half a million topics."""
        data, offset, names, size_and_first_at = self._data, self.offset, self._names.texts, _SIZE_AND_FIRST.unpack_from
        partitions: dict[str, list[int]] = {}
        for _ in range(count):
            stop = offset + 2 + (data[offset] << 8 | data[offset + 1])
            name = data[offset:stop]
            # A topic without partitions at the very end has no first one: it is read with care.
            size, first = size_and_first_at(data, stop)
            topic = names.get(name)
            if topic is None:
                if name[0] > 0x7F:
                    raise ValueError("a null, or a length below 0")
                topic = names[name] = str(name[2:], "utf-8")
            if size == 1:
                partitions[topic] = [first]
                offset = stop + 8
                continue
            numbers = stop + 4
            offset = numbers + size * 4
            if size < len(_FEW):
                partitions[topic] = [*_FEW[size](data, numbers)]
            else:
                partitions[topic] = [*struct.unpack_from(f">{size}i", data, numbers)]
        if len(partitions) < count:
            raise ValueError("a topic that comes twice")
        self.offset = offset
        return partitions

    def _odd_topic_partitions(self, what: str) -> dict[str, list[int]]:
        partitions: dict[str, list[int]] = {}
        for _ in range(self.count(what, INT16.size + INT32.size)):
            topic = self.string(f"topic of {what}")
            count = self.count(f"partitions of {topic!r} in {what}", INT32.size)
            numbers = list(struct.unpack_from(f">{count}i", self._data, self.offset))
            self.offset += count * INT32.size
            partitions.setdefault(topic, []).extend(numbers)
        return partitions

    def strings(self, what: str, each: str) -> list[str]:
        """Read ARRAY[STRING]. The list may be another reader's, too: it is not to be changed."""
        start = self.offset
        for known, texts in self._names.lists:
            if self._data[start : start + len(known)] == known:
                self.offset += len(known)
                return texts
        texts = [self.string(each) for _ in range(self.count(what, INT16.size))]
        if len(self._names.lists) < Names.MOST_LISTS:
            self._names.lists.append((self._data[start : self.offset], texts))
        return texts


def string(text: str | None) -> bytes:
    """Encode a NULLABLE_STRING. Raises `UnencodableError` where its UTF-8 is too long or does not exist."""
    if text is None:
        return INT16.pack(_NULL_LENGTH)
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise UnencodableError(f"{text!r} has no UTF-8 form: {error.reason}") from error
    if len(encoded) > 0x7FFF:
        raise UnencodableError(f"{text[:40]!r}... has {len(encoded)} bytes; a string on the wire has at most 32,767")
    return INT16.pack(len(encoded)) + encoded


def nullable_bytes(data: bytes | None) -> bytes:
    """Encode nullable BYTES."""
    return INT32.pack(_NULL_LENGTH) if data is None else INT32.pack(len(data)) + data


def strings(texts: Iterable[str]) -> bytes:
    """Encode ARRAY[STRING]."""
    encoded = [string(text) for text in texts]
    return INT32.pack(len(encoded)) + b"".join(encoded)


def topic_partitions(partitions: Mapping[str, Sequence[int]]) -> bytes:
    """Encode ARRAY[STRING topic, ARRAY[int32 partition]] in the order given; topics without partitions are left out."""
    parts = [b""]
    for topic, numbers in partitions.items():
        if len(numbers):
            parts += string(topic), INT32.pack(len(numbers)), struct.pack(f">{len(numbers)}i", *numbers)
    parts[0] = INT32.pack(len(parts) // 3)
    return b"".join(parts)
