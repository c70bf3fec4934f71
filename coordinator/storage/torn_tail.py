"""What SQLite passes over at the end of a write-ahead log: the rest of a write that did not become whole.

A process that is killed in the middle of a commit leaves some frames of it, the last one perhaps in part, and a file
that was damaged has frames with another checksum. SQLite reads up to the last commit before that and is silent about
what follows. Here that rest is told from the old frames that a log has behind its end because it is written over from
the beginning again and again: only the rest has the salts of the log's header.

The format is described in https://www.sqlite.org/fileformat2.html#the_write_ahead_log. A file that was cut off exactly
behind a whole commit looks like one that ended there, and leaves no trace.
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
_MAGIC = 0x377F0682
"""The last bit, if it is set, tells that checksums read words with the most significant byte first."""


class TornTail(NamedTuple):
    """The end of a write-ahead log that is not read."""

    size_bytes: int
    commits: int
    """Writes that end in it. A process that is killed leaves none: there are some where the file was damaged."""


def torn_tail(file: Path, frames: int) -> TornTail | None:
    """What is in the write-ahead log besides the first ``frames``, which SQLite has read; None if nothing is.

    Raises OSError. O(frames that are not read).
    """
    try:
        log = file.open("rb")
    except FileNotFoundError:
        return None
    with log:
        size = os.fstat(log.fileno()).st_size
        if not size:
            return None
        header = log.read(_HEADER.size)
        if not _is_header(header):
            return TornTail(size, 0)
        return _behind(log, size, frames, header)


def _behind(log: BinaryIO, size: int, frames: int, header: bytes) -> TornTail | None:
    salts = header[16:24]
    frame_bytes = _FRAME_HEADER_BYTES + _HEADER.unpack(header)[_PAGE_SIZE]
    begin = at = _HEADER.size + frames * frame_bytes
    commits = 0
    while at < size:
        log.seek(at)
        frame = log.read(_FRAME_HEADER_BYTES)
        found = frame[_SALTS]
        if found != salts[: len(found)]:
            break  # an old frame
        end = at + frame_bytes
        commits += end <= size and frame[_COMMIT] != bytes(4)
        at = min(end, size)
    return TornTail(at - begin, commits) if at > begin else None


def _is_header(header: bytes) -> bool:
    """Whether SQLite takes it for one: with the right checksum, as all frames have one."""
    if len(header) < _HEADER.size or int.from_bytes(header[:4]) | 1 != _MAGIC | 1:
        return False
    order = ">" if header[3] & 1 else "<"
    words = struct.unpack(f"{order}6I", header[:24])
    one = two = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return (one, two) == struct.unpack(">2I", header[24:])
