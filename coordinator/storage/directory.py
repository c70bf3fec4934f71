"""A data directory: the values and record batches of a cluster in one SQLite database, with a write-ahead log.

What is told to it is written when `Directory.commit` is called, all of it or nothing; after that it survives the end of
the process, however that comes. It survives a loss of power up to SQLite's last checkpoint, as Kafka's records survive
it up to the last flush of the system. One process at a time may have a directory open.
"""

from __future__ import annotations

import logging
import sqlite3
import zlib
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import UUID

from loadwise.coordinator.errors import DataDirError
from loadwise.coordinator.keeper import KeptBatch, LogContents, LogName, Place, Snapshot
from loadwise.coordinator.storage.kinds import FORMAT, Codec, place_of, place_text
from loadwise.coordinator.storage.torn_tail import torn_tail

_log = logging.getLogger("loadwise.coordinator")

FILE_NAME = "loadwise.sqlite3"
_APPLICATION_ID = 0x6C6F6164  # "load"

_TABLES = """
CREATE TABLE state (place TEXT PRIMARY KEY, kind TEXT NOT NULL, value TEXT NOT NULL, crc32 INTEGER NOT NULL);
CREATE TABLE batches (
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    last_offset INTEGER NOT NULL,
    max_timestamp_ms INTEGER NOT NULL,
    data BLOB NOT NULL,
    crc32 INTEGER NOT NULL
);
CREATE UNIQUE INDEX batches_of_logs ON batches (topic, partition, last_offset);
"""
_WHOSE = f"PRAGMA application_id = {_APPLICATION_ID}; PRAGMA user_version = {FORMAT};"
_PUT = "REPLACE INTO state VALUES (?, ?, ?, ?)"
_DROP = "DELETE FROM state WHERE place = ?"
_APPEND = "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)"
_DROP_BEFORE = "DELETE FROM batches WHERE topic = ? AND partition = ? AND last_offset < ?"
_DROP_LOG = "DELETE FROM batches WHERE topic = ? AND partition = ?"


class Directory:
    """Opens a data directory, or makes it. Raises `DataDirError` where that cannot be, and `MissingLibraryError`."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._codec = Codec()
        self._path = Path(path)
        self._changes: list[tuple[str, tuple[Any, ...]]] = []
        self._puts: dict[Place, object] = {}
        try:
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = self._path / FILE_NAME
            file.touch(mode=0o600)
            self._db = sqlite3.connect(file, isolation_level=None, timeout=0)
        except (OSError, sqlite3.Error) as problem:
            raise DataDirError(f"the data directory {self._path} cannot be used: {problem}") from problem
        try:
            self._begin()
        except BaseException:
            self._db.close()
            raise

    def _begin(self) -> None:
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("BEGIN EXCLUSIVE")
            (application_id,) = self._db.execute("PRAGMA application_id").fetchone()
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            self._db.execute("COMMIT")
            if tables and application_id != _APPLICATION_ID:
                raise DataDirError(f"{self._path / FILE_NAME} is a database of another program")
            if version > FORMAT:
                raise DataDirError(
                    f"the data directory {self._path} has format {version}, and this loadwise reads formats up to "
                    f"{FORMAT}: use the newer loadwise that wrote it, or another directory"
                )
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._cut_torn_tail()
            if not tables:
                self._db.executescript(f"BEGIN; {_TABLES} {_WHOSE} COMMIT;")
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise DataDirError(f"another process uses the data directory {self._path}: stop it first") from problem
            raise DataDirError(f"the data directory {self._path} cannot be used: {problem}") from problem
        except sqlite3.DatabaseError as problem:
            raise self._damaged(str(problem)) from problem
        except OSError as problem:
            raise DataDirError(f"the data directory {self._path} cannot be used: {problem}") from problem

    def _cut_torn_tail(self) -> None:
        """Take off the log what SQLite has not read of it, with a message; it would be silent."""
        _, frames, _ = self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        tail = torn_tail(self._path / f"{FILE_NAME}-wal", max(frames, 0))
        if tail is None:
            return
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        where = f"the write-ahead log in the data directory {self._path}"
        if tail.commits:
            _log.warning(
                "%s is damaged: its last %d bytes were cut off, and %d whole writes in them are lost",
                where, tail.size_bytes, tail.commits,
            )  # fmt: skip
        else:
            _log.warning(
                "%s ended in a write that was not whole, as when a process is killed: its last %d bytes were cut off",
                where, tail.size_bytes,
            )  # fmt: skip

    # ---- what it has ----

    def read(self) -> Snapshot:
        """All that is kept. Raises `DataDirError` for what was damaged. O(bytes)."""
        try:
            (verdict,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise self._damaged(verdict)
            rows = self._db.execute("SELECT place, kind, value, crc32 FROM state ORDER BY rowid")
            values = tuple(self._value(*row) for row in rows)
            kept: dict[LogName, list[KeptBatch]] = {}
            query = "SELECT topic, partition, data, last_offset, max_timestamp_ms, crc32 FROM batches ORDER BY rowid"
            for topic, partition, data, last_offset, max_timestamp_ms, crc32 in self._db.execute(query):
                name = LogName(UUID(topic), partition)
                batch = KeptBatch(data, last_offset, max_timestamp_ms)
                if crc32 != _batch_crc32(name, batch):
                    which = f"partition {partition} of the topic with the id {topic}"
                    raise self._damaged(f"the record batch up to offset {last_offset} of {which} has another CRC")
                kept.setdefault(name, []).append(batch)
        except (
            sqlite3.DatabaseError,
            ValueError,
            TypeError,
            AttributeError,
        ) as problem:  # also of values of other types
            raise self._damaged(str(problem)) from problem
        return Snapshot(values, {name: LogContents.of(batches) for name, batches in kept.items()})

    def _value(self, place: str, kind: str, text: str, crc32: int) -> tuple[Place, object]:
        if crc32 != _crc32(place, kind, text):
            raise self._damaged(f"the value of {place} has another CRC")
        try:
            return place_of(place), self._codec.decoded(kind, text)
        except Exception as problem:  # cattrs raises groups of whatever was wrong
            raise self._damaged(f"the value of {place} cannot be read: {problem!r}") from problem

    def _damaged(self, what: str) -> DataDirError:
        return DataDirError(
            f"the data directory {self._path} is damaged: {what}. Put a copy of it back, or begin with another one"
        )

    # ---- what it is told ----

    @property
    def has_changes(self) -> bool:
        """Whether something was told that is not safe yet."""
        return bool(self._puts or self._changes)

    def commit(self) -> None:
        """Make all that was told safe. Raises `DataDirError` where that cannot be; nothing more is safe then."""
        if not self.has_changes:
            return
        try:
            self._db.execute("BEGIN")
            for statement, values in self._changes:
                self._db.execute(statement, values)
            for place, value in self._puts.items():
                key = place_text(place)
                if value is None:
                    self._db.execute(_DROP, (key,))
                else:
                    kind, text = self._codec.encoded(value)
                    self._db.execute(_PUT, (key, kind, text, _crc32(key, kind, text)))
            self._db.execute("COMMIT")
        except sqlite3.Error as problem:
            raise DataDirError(f"the data directory {self._path} cannot be written: {problem}") from problem
        self._changes.clear()
        self._puts.clear()

    def close(self) -> None:
        """Let other processes have it. What was told and not committed is lost."""
        self._db.close()

    def replace(self, state: Snapshot) -> None:
        """Keep this, and nothing of what there was."""
        self._changes = [("DELETE FROM state", ()), ("DELETE FROM batches", ())]
        self._puts = dict(state.values)
        for name, contents in state.logs.items():
            for batch in contents.kept():
                self.append(name, batch)

    def put(self, place: Place, value: object) -> None:
        """Keep a value in place of the one that was there."""
        self._puts.pop(place, None)  # the order of the last changes counts
        self._puts[place] = value

    def drop(self, place: Place) -> None:
        """Forget what was there, if anything was."""
        self._puts[place] = None

    def append(self, log: LogName, batch: KeptBatch) -> None:
        """Keep one more batch at the end of a log."""
        crc32 = _batch_crc32(log, batch)
        row = (str(log.topic_id), log.partition, batch.last_offset, batch.max_timestamp_ms, batch.data, crc32)
        self._changes.append((_APPEND, row))

    def drop_before(self, log: LogName, offset: int) -> None:
        """Forget the batches of a log whose records are all before an offset."""
        self._changes.append((_DROP_BEFORE, (str(log.topic_id), log.partition, offset)))

    def drop_log(self, log: LogName) -> None:
        """Forget a log."""
        self._changes.append((_DROP_LOG, (str(log.topic_id), log.partition)))


def _crc32(*texts: str) -> int:
    return zlib.crc32("\0".join(texts).encode())


def _batch_crc32(log: LogName, batch: KeptBatch) -> int:
    # Not the CRC in the batch alone, which leaves its offset out.
    key = f"{log.topic_id} {log.partition} {batch.last_offset} {batch.max_timestamp_ms}"
    return zlib.crc32(batch.data, zlib.crc32(key.encode()))
