"""Finds out, before a data directory is opened, whether writes that were acknowledged are missing from it.

Nothing in the directory is changed by that: SQLite deletes a log beside an empty main file, copies any log into any
main file, and removes it.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from loadwise.coordinator.errors import LostWritesError
from loadwise.coordinator.storage.acknowledged import Acknowledged
from loadwise.coordinator.storage.files import ACKNOWLEDGED_NAME, APPLICATION_ID, FILE_NAME, log_of, size_of
from loadwise.coordinator.storage.write_ahead_log import WriteAheadLog, log_contents
from loadwise.coordinator.storage.writes import Writes, writes_of


class Found(NamedTuple):
    """What there is before a directory is opened."""

    acknowledged: Acknowledged | None
    """None of a new directory, and of one that an older loadwise wrote."""
    log: WriteAheadLog


def check(path: Path) -> Found:
    """What a directory has. Raises `LostWritesError`, `sqlite3.DatabaseError` for damage, and OSError."""
    main = path / FILE_NAME
    log = log_contents(log_of(main))
    acknowledged = _acknowledged(path)
    if not size_of(main):
        _check_new(main, acknowledged, log_of(main))
    elif acknowledged is None:
        _check_older(main, log)
    elif acknowledged.writes:
        _check_writes(main, acknowledged, log)
    return Found(acknowledged, log)


def _acknowledged(path: Path) -> Acknowledged | None:
    file = path / ACKNOWLEDGED_NAME
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    if not data:
        return None  # as of a process that was killed while it made the directory
    try:
        return Acknowledged.of(data)
    except ValueError as problem:
        raise LostWritesError(path, f"{file.name} is damaged ({problem}), so writes may be lost") from problem


def _check_new(main: Path, acknowledged: Acknowledged | None, log: Path) -> None:
    state = "is empty" if main.exists() else "is missing"
    if acknowledged is not None and acknowledged.writes:
        raise LostWritesError(main.parent, f"{main.name} {state}, and with it all {acknowledged.writes} of its writes")
    if size_of(log):
        raise LostWritesError(main.parent, f"{main.name} {state}, and {log.name} alone cannot be read")


def _check_older(main: Path, log: WriteAheadLog) -> None:
    if log.is_damaged:
        raise LostWritesError(main.parent, f"{log_of(main).name} is damaged, but undamaged writes follow the damage")
    if _read(main).with_log is not None:
        raise LostWritesError(main.parent, f"{ACKNOWLEDGED_NAME} is missing or empty, so writes may be lost")


def _check_writes(main: Path, acknowledged: Acknowledged, log: WriteAheadLog) -> None:
    found, alone = _read(main, is_copying=acknowledged.is_copying)
    in_main, name = acknowledged.in_main, log_of(main).name
    if found is not None and found.directory != acknowledged.directory:
        reason = f"{main.name}, {name} and {ACKNOWLEDGED_NAME} are of different directories"
    elif found is None or found.number < acknowledged.writes:
        lost = acknowledged.writes - (0 if found is None else found.number)
        reason = f"{lost} of {acknowledged.writes} acknowledged writes are lost: {name} {_state(main, log)}"
    elif acknowledged.is_copying and not log.writes:
        reason = f"{name} {_state(main, log)}, and it was being copied into {main.name}"
    elif alone is not None and alone.directory != acknowledged.directory:
        reason = f"{main.name} is of another directory"
    elif (alone is None and in_main and not acknowledged.is_copying) or (alone is not None and alone.number < in_main):
        reason = f"{main.name} is older than {name}"
    else:
        return
    raise LostWritesError(main.parent, reason)


def _state(main: Path, log: WriteAheadLog) -> str:
    """What is wrong with a log that lacks writes."""
    if not log_of(main).exists():
        return f"is missing, or {main.name} is older than {ACKNOWLEDGED_NAME}"
    if not log.writes and not log.rest_bytes:
        return "is empty"
    return "is damaged or ends too early"


class _Read(NamedTuple):
    with_log: Writes | None
    alone: Writes | None = None
    """What the main file has without its log."""


def _read(main: Path, *, is_copying: bool = False) -> _Read:
    if not size_of(log_of(main)):
        writes = _writes(main, "immutable=1")
        return _Read(writes, writes)
    shared = main.with_name(f"{main.name}-shm")
    had_shared = shared.exists()
    # Read-only: a connection that may write copies the log when it is closed.
    with closing(_connected(main, "mode=ro")) as db:
        db.execute("BEGIN")  # no other process may begin meanwhile
        writes = writes_of(db) if _is_ours(db) else None
        try:
            alone = _writes(main, "immutable=1")
        except sqlite3.DatabaseError:
            if not is_copying:
                raise
            alone = None
    if not had_shared:
        shared.unlink(missing_ok=True)
    return _Read(writes, alone)


def _writes(main: Path, how: str) -> Writes | None:
    with closing(_connected(main, how)) as db:
        return writes_of(db) if _is_ours(db) else None


def _is_ours(db: sqlite3.Connection) -> bool:
    return bool(db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,))


def _connected(main: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{main.absolute().as_uri()}?{how}", uri=True, isolation_level=None, timeout=0)
