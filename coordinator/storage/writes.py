"""The number of a data directory's last write, which each transaction of its database counts up."""

from __future__ import annotations

import sqlite3
import zlib
from typing import NamedTuple
from uuid import UUID

TABLE = "CREATE TABLE writes (directory TEXT NOT NULL, number INTEGER NOT NULL, crc32 INTEGER NOT NULL)"
"""Of one row. An older loadwise passes it over."""
_INSERT = "INSERT INTO writes VALUES (?, ?, ?)"
_UPDATE = "UPDATE writes SET (directory, number, crc32) = (?, ?, ?)"


class Writes(NamedTuple):
    """Which write was the last one, of which directory."""

    directory: UUID
    number: int

    def put(self, db: sqlite3.Connection, *, is_first: bool = False) -> None:
        """Write it into the database."""
        row = (str(self.directory), self.number, _crc32(str(self.directory), self.number))
        db.execute(_INSERT if is_first else _UPDATE, row)


def writes_of(db: sqlite3.Connection) -> Writes | None:
    """The number in the database; None without the table. Raises `sqlite3.DatabaseError` for a damaged row."""
    if not db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'writes'").fetchone()[0]:
        return None
    rows = db.execute("SELECT directory, number, crc32 FROM writes").fetchall()
    try:
        ((directory, number, crc32),) = rows
        if crc32 != _crc32(directory, number):
            raise ValueError("another CRC")
        return Writes(UUID(directory), number)
    except (ValueError, TypeError, AttributeError) as problem:
        raise sqlite3.DatabaseError(f"the number of the last write cannot be read ({problem})") from problem


def _crc32(directory: str, number: int) -> int:
    return zlib.crc32(f"{directory} {number}".encode())
