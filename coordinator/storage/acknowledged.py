"""The file that counts the acknowledged writes of a data directory.

It is written after each commit and before its answers leave, without waiting for the disk. So it survives the end of
the process as the database does, and a database that has fewer writes has lost some.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import NamedTuple
from uuid import UUID


class Acknowledged(NamedTuple):
    """How many writes were acknowledged, and how many are safe without the write-ahead log."""

    directory: UUID
    """A random id, which the database has too."""
    writes: int
    in_main: int
    """The last write that was copied from the log into the main file."""
    is_copying: bool = False
    """Whether the log is just being copied: the main file alone may be anything then."""

    def to_bytes(self) -> bytes:
        """One line of fixed size with a CRC."""
        line = b"%s %020d %020d %d" % (str(self.directory).encode(), self.writes, self.in_main, self.is_copying)
        return b"%s %08x\n" % (line, zlib.crc32(line))

    @classmethod
    def of(cls, data: bytes) -> Acknowledged:
        """Read what `to_bytes` wrote. Raises ValueError."""
        line, _, crc32 = data.rpartition(b" ")
        if crc32 != b"%08x\n" % zlib.crc32(line):
            raise ValueError("its CRC is wrong")
        directory, writes, in_main, is_copying = line.decode().split(" ")
        return cls(UUID(directory), int(writes), int(in_main), bool(int(is_copying)))


class AcknowledgedFile:
    """Keeps the file open for writing, and makes it if it is missing. Raises OSError."""

    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)

    def write(self, acknowledged: Acknowledged, *, flush: bool = False) -> None:
        """Replace the content of the file; ``flush`` waits for the disk."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, acknowledged.to_bytes())
        if flush:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
