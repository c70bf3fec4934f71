"""Collects the batches of a Fetch that hold records of a range, uncompressed, by their headers alone.

`loadwise.spark_source.reading.record_columns` decodes the records. Batches that a consumer never gets are left out:
transaction markers, and with ``read_committed`` aborted transactions. Mirrors ``CompletedFetch``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from crc32c import crc32c

from loadwise.protocol.batches import HEADER_BYTES, MAGIC, MAGIC_OFFSET, BatchHeader, checksummed, read_header
from loadwise.protocol.errors import MalformedBytesError, MissingCodecError
from loadwise.protocol.unpacking import unpacked
from loadwise.spark_source.errors import OTHERS_MAY_READ, START_BEHIND, BatchError, OtherReaderError

MAX_UNPACKED_BYTES = 4 << 20
"""A set with this size takes no further batch, which begins the next set. Larger sets are no faster."""
MAX_BATCH_BYTES = (1 << 31) - (64 << 20)
"""The largest uncompressed batch: Arrow's offsets have 31 bits, and a set may hold batches before it."""
_OTHERS = OTHERS_MAY_READ.format(reader="messages")


@dataclass(slots=True)
class RecordSet:
    """Records of one partition in batches, not decoded yet."""

    start: int
    """The first offset of the range."""
    end: int
    """The offset behind the range."""
    next_offset: int
    """The offset of the next Fetch, behind all batches seen, with records or without."""
    problem: BatchError | None = None
    """The error of the next batch, which cannot be read."""
    parts: list[bytes | memoryview] = field(default_factory=list)
    """The records of each batch."""
    headers: list[BatchHeader] = field(default_factory=list)
    """The header of each batch."""


def record_sets(
    data: bytes,
    start: int,
    end: int,
    *,
    check_crcs: bool,
    aborted: Iterable[tuple[int, int]] | None = None,
) -> Iterator[RecordSet]:
    """Yield the batches of ``data`` that may hold records of the offsets [start, end), in one set or more.

    ``aborted`` has the producer id and the first offset of each aborted transaction, as in Fetch's answer; None reads
    uncommitted records too. A batch that cannot be read ends the last set as its `problem`.
    """
    transactions = _Aborted(aborted)
    view = memoryview(data)
    while True:
        found = RecordSet(start, end, next_offset=start)
        view = _fill(found, view, transactions, check_crcs=check_crcs)
        yield found
        if found.next_offset == start or found.next_offset >= end or found.problem is not None or not view:
            return
        start = found.next_offset


def _fill(found: RecordSet, view: memoryview, transactions: _Aborted, *, check_crcs: bool) -> memoryview:
    """Put batches into the set until it is large enough, and return the bytes behind them."""
    size = 0
    while view and found.next_offset < found.end and size < MAX_UNPACKED_BYTES:
        try:
            header = _checked(view, check_crcs=check_crcs)
            if header is None:
                return memoryview(b"")
            if header.base_offset >= found.end:
                found.next_offset = found.end
                break
            records = view[HEADER_BYTES : header.size_bytes]
            next_offset = header.base_offset + header.last_offset_delta + 1
            if next_offset > found.start and not transactions.hide(header) and not header.is_control:
                part = _unpacked(records, header)
                found.parts.append(part)
                found.headers.append(header)
                size += len(part)
        except BatchError as problem:
            found.problem = problem
            break
        found.next_offset = max(found.next_offset, next_offset)
        view = view[header.size_bytes :]
    return view


def _checked(view: memoryview, *, check_crcs: bool) -> BatchHeader | None:
    """Return the header of the first batch, of a known format; None if the batch is not whole."""
    # The format is at the same place in all of them, and a set of old messages may be shorter than our header.
    if len(view) > MAGIC_OFFSET and view[MAGIC_OFFSET] != MAGIC:
        raise OtherReaderError(
            f"the batch there is of message format {view[MAGIC_OFFSET]}, from before Kafka 0.11",
            "set reader=messages, which reads it",
        )
    header = read_header(view)
    if header is None or header.size_bytes > len(view):
        return None
    if header.size_bytes < HEADER_BYTES:
        raise BatchError("the batch there is malformed: it is smaller than its header", _OTHERS)
    if check_crcs and crc32c(checksummed(view[: header.size_bytes])) != header.crc:
        raise BatchError(
            "the batch there is corrupt (its CRC does not match)",
            f"to read it anyway set kafka.check.crcs=false, or {START_BEHIND}",
        )
    return header


def _unpacked(records: memoryview, header: BatchHeader) -> bytes | memoryview:
    try:
        found = unpacked(records, header.compression, MAX_BATCH_BYTES)
        # The buffer of uncompressed bytes is several times too large.
        return found if found is records else bytes(found)
    except MalformedBytesError as problem:
        raise BatchError(f"the batch there cannot be decompressed: {problem}", _OTHERS) from None
    except MissingCodecError as missing:
        raise OtherReaderError(str(missing), "do so where this task runs, or set reader=messages") from None


class _Aborted:
    """Finds the batches of aborted transactions, which come in the order of offsets."""

    def __init__(self, aborted: Iterable[tuple[int, int]] | None) -> None:
        self._to_come = sorted(((first, producer) for producer, first in aborted or ()), reverse=True)
        self._open: set[int] = set()

    def hide(self, header: BatchHeader) -> bool:
        """Whether the next batch is aborted. A producer's next marker ends its transaction."""
        last = header.base_offset + header.last_offset_delta
        while self._to_come and self._to_come[-1][0] <= last:
            self._open.add(self._to_come.pop()[1])
        if header.producer_id not in self._open:
            return False
        if header.is_control:
            self._open.remove(header.producer_id)
        return header.is_transactional
