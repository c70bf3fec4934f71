"""Reads a write-ahead log of SQLite without changing it: how many writes are whole, and what follows them.

SQLite reads a log up to its last whole write and is silent about the rest. The rest is what a killed process left of a
commit, or what follows a damaged place. It has the salts of the log's header. Frames with other salts are of an earlier
use of the same file, and no loss.

The format is described in https://www.sqlite.org/fileformat2.html#the_write_ahead_log.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

_HEADER = struct.Struct(">8I")
"""Magic number, version, page size, number of the checkpoint, two salts, two checksums."""
_PAGE_SIZE = 2
_FRAME_HEADER_BYTES = 24
_COMMIT = slice(4, 8)
"""In the header of a frame: how many pages the database has, if the frame ends a commit, or else 0."""
_SALTS = slice(8, 16)
"""In the header of a frame: the salts of the log at the time."""
_CHECKSUM = slice(16, 24)
_MAGIC = 0x377F0682
"""With the last bit set, checksums read words with the most significant byte first."""


class WriteAheadLog(NamedTuple):
    """What a write-ahead log has."""

    writes: int = 0
    """Whole writes, which SQLite reads."""
    rest_bytes: int = 0
    """Size of what follows them and is not read; old frames do not count."""
    is_damaged: bool = False
    """Whether the rest has whole writes. A process that is killed leaves none."""


def log_contents(file: Path) -> WriteAheadLog:
    """What a write-ahead log has; nothing if there is no file. Raises OSError. O(size of the file)."""
    try:
        log = file.open("rb")
    except FileNotFoundError:
        return WriteAheadLog()
    with log:
        size = os.fstat(log.fileno()).st_size
        header = log.read(_HEADER.size)
        if not _is_header(header):
            return WriteAheadLog(0, size, is_damaged=size > _HEADER.size)
        return _frames(log, size, header)


def _frames(log: BinaryIO, size: int, header: bytes) -> WriteAheadLog:
    salts, checksum, order = header[16:24], header[24:32], _order(header)
    page_bytes = _HEADER.unpack(header)[_PAGE_SIZE]
    whole_end = end = _HEADER.size
    writes, is_readable, is_damaged = 0, True, False
    while end < size:
        frame = log.read(_FRAME_HEADER_BYTES)
        found = frame[_SALTS]
        if found != salts[: len(found)]:
            break  # an old frame
        page = log.read(page_bytes)
        end = min(end + _FRAME_HEADER_BYTES + page_bytes, size)
        is_whole = len(page) == page_bytes
        if is_readable:
            checksum = _checksum(frame[:8] + page, checksum, order) if is_whole else b""
            is_readable = checksum == frame[_CHECKSUM]
        if is_whole and frame[_COMMIT] != bytes(4):
            if is_readable:
                writes += 1
                whole_end = end
            else:
                is_damaged = True
    return WriteAheadLog(writes, end - whole_end, is_damaged)


def _is_header(header: bytes) -> bool:
    """Whether SQLite takes it for one: with the right checksum, as all frames have one."""
    if len(header) < _HEADER.size or int.from_bytes(header[:4]) | 1 != _MAGIC | 1:
        return False
    return _checksum(header[:24], bytes(8), _order(header)) == header[24:]


def _order(header: bytes) -> str:
    return ">" if header[3] & 1 else "<"


def _checksum(data: bytes, before: bytes, order: str) -> bytes:
    """The checksum of these bytes behind what has the checksum ``before``."""
    one, two = struct.unpack(">2I", before)
    for even, odd in struct.iter_unpack(f"{order}2I", data):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return struct.pack(">2I", one, two)
