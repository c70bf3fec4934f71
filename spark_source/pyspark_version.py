"""The differences between the versions of PySpark: 4.0 and 4.1, and from 4.2 on.

Before 4.2 (SPARK-55304) Spark asks a stream for the end of the next micro-batch, and passes neither its start nor a
limit. It does so before it asks for the start of the query, both after a restart and in a new query. The trigger
availableNow is like once: one micro-batch, which may be an unfinished one. So no records can be held back for a later
micro-batch, and the source does not learn when the last one was processed.

This module imports without PySpark, and with every version of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from loadwise.installation import pip_install
from loadwise.spark_source.errors import MissingDependencyError, OptionError

try:
    from pyspark import __version__ as _installed
except ImportError:
    _installed = ""

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:

    class ReadLimit:  # type: ignore[no-redef]  # these stand in for classes that PySpark lacks before 4.2
        """The size of a micro-batch."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """All records."""

    @dataclass(frozen=True)
    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        """At most this many rows."""

        max_rows: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A stream that supports ``availableNow``."""


__all__ = [
    "NAMES_START",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
    "needs_pyspark",
    "refuse_what_needs_later",
]


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


NAMES_START = _number(_installed) >= (4, 2)
"""Whether Spark passes the start of a micro-batch and a limit when it asks a stream for the end."""


def needs_pyspark() -> MissingDependencyError:
    """Return the error for a PySpark without Python data sources, or without PySpark."""
    found = f"and {_installed} is installed" if _installed else "which is not installed"
    return MissingDependencyError(
        f"loadwise.spark_source needs PySpark 4.0 or later, {found}; get it with: {pip_install('spark')}"
    )


def refuse_what_needs_later(options: Mapping[str, str], *, streaming: bool) -> None:
    """Raise `OptionError` for an option that this PySpark does not support; names may be in any case."""
    if NAMES_START:
        return
    given = {name.lower(): value for name, value in options.items()}
    later = f"needs PySpark 4.2 or later, and {_installed} is installed"
    if given.get("assignment.mode", "").strip().lower() == "member":
        raise OptionError("assignment.mode", f"member {later}")
    if streaming and "maxoffsetspertrigger" in given:
        raise OptionError("maxOffsetsPerTrigger", later)
    if streaming and given.get("commitgroup", "").strip().lower() == "true":
        raise OptionError("commitGroup", later)
