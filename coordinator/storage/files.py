"""The files of a data directory, by name."""

from __future__ import annotations

from pathlib import Path

FILE_NAME = "loadwise.sqlite3"
"""The database."""

ACKNOWLEDGED_NAME = "loadwise.acknowledged"
"""How many writes were acknowledged: `loadwise.coordinator.storage.acknowledged`."""

APPLICATION_ID = 0x6C6F6164  # "load"
"""Marks the database as ours."""


def log_of(main: Path) -> Path:
    """The write-ahead log that SQLite keeps beside a database."""
    return main.with_name(f"{main.name}-wal")


def size_of(file: Path) -> int:
    """How many bytes a file has; 0 if it is missing. Raises OSError."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
