"""A data directory: the values and record batches of a cluster in one SQLite database, with a write-ahead log.

`Directory.commit` writes all changes or none. Once it has returned, they survive the end of the process, even a kill.
After a power failure, the changes up to SQLite's last checkpoint are left, as Kafka's records are up to the operating
system's last flush. Only one process at a time can open a directory.
"""

from __future__ import annotations

import logging
import sqlite3
import zlib
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from loadwise.coordinator.errors import DataDirError, LostWritesError
from loadwise.coordinator.keeper import DataDirectory, KeptBatch, LogContents, LogName, Place, Snapshot
from loadwise.coordinator.storage import lost_writes
from loadwise.coordinator.storage.acknowledged import Acknowledged, AcknowledgedFile
from loadwise.coordinator.storage.files import ACKNOWLEDGED_NAME, APPLICATION_ID, FILE_NAME, log_of, size_of
from loadwise.coordinator.storage.kinds import FORMAT, Codec, place_of, place_text
from loadwise.coordinator.storage.write_ahead_log import WriteAheadLog
from loadwise.coordinator.storage.writes import TABLE, Writes, writes_of

_log = logging.getLogger("loadwise.coordinator")

LOG_BYTES = 4_000_000
"""The size of the write-ahead log at which it is copied into the main file."""

_TABLES = (
    "CREATE TABLE state (place TEXT PRIMARY KEY, kind TEXT NOT NULL, value TEXT NOT NULL, crc32 INTEGER NOT NULL)",
    """CREATE TABLE batches (
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    last_offset INTEGER NOT NULL,
    max_timestamp_ms INTEGER NOT NULL,
    data BLOB NOT NULL,
    crc32 INTEGER NOT NULL
)""",
    "CREATE UNIQUE INDEX batches_of_logs ON batches (topic, partition, last_offset)",
)
_WHOSE = (f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {FORMAT}")
_PUT = "REPLACE INTO state VALUES (?, ?, ?, ?)"
_DROP = "DELETE FROM state WHERE place = ?"
_APPEND = "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)"
_DROP_BEFORE = "DELETE FROM batches WHERE topic = ? AND partition = ? AND last_offset < ?"
_DROP_LOG = "DELETE FROM batches WHERE topic = ? AND partition = ?"


class Directory(DataDirectory):
    """Opens a data directory, or creates it. Raises `DataDirError` if that fails, and `MissingLibraryError`.

    ``accept_data_loss``: continue even if acknowledged writes are missing, instead of raising `LostWritesError`.
    """

    def __init__(self, path: str | PathLike[str], *, accept_data_loss: bool = False) -> None:
        self._codec = Codec()
        self._path = Path(path)
        self._main = self._path / FILE_NAME
        self._changes: list[tuple[str, tuple[Any, ...]]] = []
        self._puts: dict[Place, object] = {}
        self._has_lost_writes = False
        self._in_main = 0
        try:
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
            log = self._checked(accept_data_loss=accept_data_loss)
            self._main.touch(mode=0o600)
            self._db = sqlite3.connect(self._main, isolation_level=None, timeout=0)
        except (OSError, sqlite3.Error) as problem:
            raise self._unusable(problem) from problem
        try:
            self._begin(log)
        except BaseException as problem:
            self._db.close()
            if isinstance(problem, OSError | sqlite3.Error):
                raise self._unusable(problem) from problem
            raise

    def _checked(self, *, accept_data_loss: bool) -> WriteAheadLog:
        """What the write-ahead log has. Raises `LostWritesError`, if that is not accepted."""
        try:
            found = lost_writes.check(self._path)
        except LostWritesError as problem:
            if not accept_data_loss:
                raise
            _log.warning("continuing although the data directory %s has lost writes: %s", self._path, problem.reason)
            self._has_lost_writes = True
            return WriteAheadLog()
        if found.acknowledged is not None:
            self._in_main = found.acknowledged.in_main
        return found.log

    def _unusable(self, problem: OSError | sqlite3.Error) -> DataDirError:
        if isinstance(problem, sqlite3.OperationalError) and problem.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            return DataDirError(f"another process uses the data directory {self._path}: stop it first")
        if isinstance(problem, sqlite3.DatabaseError) and not isinstance(problem, sqlite3.OperationalError):
            return self._damaged(str(problem))
        return DataDirError(f"the data directory {self._path} cannot be used: {problem}")

    def _begin(self, log: WriteAheadLog) -> None:
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("BEGIN EXCLUSIVE")
        (application_id,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        self._db.execute("COMMIT")
        if tables and application_id != APPLICATION_ID:
            raise DataDirError(f"{self._main} is another program's database")
        if version > FORMAT:
            raise DataDirError(
                f"the data directory {self._path} has format {version}, but this loadwise reads formats only up "
                f"to {FORMAT}: use the newer loadwise that wrote it, or another directory"
            )
        last = writes_of(self._db)
        self._last = last or Writes(uuid4(), 0)
        self._acknowledged = AcknowledgedFile(self._path / ACKNOWLEDGED_NAME)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA wal_autocheckpoint = 0")
        self._copy_log()
        self._report_rest(log)
        if last is None:
            self._last = Writes(self._last.directory, 1)
            self._db.execute("BEGIN")
            for statement in (*(() if tables else (*_TABLES, *_WHOSE)), TABLE):
                self._db.execute(statement)
            self._last.put(self._db, is_first=True)
            self._db.execute("COMMIT")
        self._acknowledge()

    def _report_rest(self, log: WriteAheadLog) -> None:
        """Log what SQLite has not read of the write-ahead log; it is silent about that."""
        if log.rest_bytes:
            _log.warning(
                "the write-ahead log in the data directory %s ended in an incomplete write, as after a kill: its "
                "last %d bytes were cut off, which contained no acknowledged write",
                self._path, log.rest_bytes,
            )  # fmt: skip

    def _copy_log(self) -> None:
        """Copy the write-ahead log into the main file, and empty it."""
        if size_of(log_of(self._main)):
            # Whoever finds the main file in the middle of this must know that it needs the log.
            self._acknowledge(is_copying=True)
            self._checkpoint("PASSIVE")
            self._in_main = self._last.number
            self._acknowledge(flush=True)
            self._checkpoint("TRUNCATE")

    def _checkpoint(self, mode: str) -> None:
        busy, frames, copied = self._db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        if busy or frames != copied:
            raise DataDirError(f"the data directory {self._path} cannot be written: its log cannot be copied")

    def _acknowledge(self, *, is_copying: bool = False, flush: bool = False) -> None:
        self._acknowledged.write(Acknowledged(*self._last, self._in_main, is_copying), flush=flush)

    # ---- what it has ----

    def read(self) -> Snapshot:
        """All that is kept. Raises `DataDirError` for what was damaged. O(bytes)."""
        try:
            check = "integrity_check" if self._has_lost_writes else "quick_check"
            (verdict,) = self._db.execute(f"PRAGMA {check}(1)").fetchone()
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
                    raise self._damaged(f"the record batch up to offset {last_offset} of {which} fails its CRC check")
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
            raise self._damaged(f"the value of {place} fails its CRC check")
        try:
            return place_of(place), self._codec.decoded(kind, text)
        except Exception as problem:  # cattrs raises groups of whatever was wrong
            raise self._damaged(f"the value of {place} cannot be read: {problem!r}") from problem

    def _damaged(self, what: str) -> DataDirError:
        return DataDirError(
            f"the data directory {self._path} is damaged: {FILE_NAME}: {' '.join(what.split())}. "
            "Restore a copy of the whole directory, or start with a new one"
        )

    # ---- changes ----

    @property
    def has_changes(self) -> bool:
        """Whether there are changes that are not safe yet."""
        return bool(self._puts or self._changes)

    def commit(self) -> None:
        """Make all changes safe. Raises `DataDirError` where that cannot be; nothing more is safe then."""
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
            last = Writes(self._last.directory, self._last.number + 1)
            last.put(self._db)
            self._db.execute("COMMIT")
            self._last = last
            self._acknowledge()
            if size_of(log_of(self._main)) >= LOG_BYTES:
                self._copy_log()
        except (sqlite3.Error, OSError) as problem:
            raise DataDirError(f"the data directory {self._path} cannot be written: {problem}") from problem
        self._changes.clear()
        self._puts.clear()

    def close(self) -> None:
        """Let other processes have it. Changes that were not committed are lost."""
        try:
            self._db.rollback()
            self._copy_log()
        except (sqlite3.Error, OSError, DataDirError) as problem:
            # Nothing is lost: all that was acknowledged is in the log.
            _log.warning("the write-ahead log stays in the data directory %s: %s", self._path, problem)
        self._db.close()
        if not log_of(self._main).exists():  # SQLite has copied and removed it
            self._in_main = self._last.number
            self._acknowledge()
        self._acknowledged.close()

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
        """Forget the earlier content."""
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
