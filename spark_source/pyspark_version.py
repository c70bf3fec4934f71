"""What differs between the versions of PySpark that this source runs in: 4.0 and 4.1, and those from 4.2 on.

Before 4.2 (SPARK-55304) Spark asks a stream where the next micro-batch ends and names neither its start nor a limit.
It asks so before it asks where the query starts, and after a restart as in a new query. The trigger availableNow is as
once: one micro-batch, which is the unfinished one where there is one. So nothing can be held back for a later
micro-batch, nor is known when the last one was processed.

This module imports without PySpark and in every version of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

from loadwise.installation import pip_install
from loadwise.spark_source.errors import MissingDependencyError, OptionError

try:
    from pyspark import __version__ as _installed
except ImportError:
    _installed = ""

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:

    class ReadLimit:  # type: ignore[no-redef]  # stands in for what Spark does not ask for before 4.2
        """How much a micro-batch may hold."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """All that there is."""

    @dataclass(frozen=True)
    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        """So many rows."""

        max_rows: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A stream that knows where a query ends that reads what there is now."""


__all__ = [
    "NAMES_START",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
    "arrow_schema",
    "needs_pyspark",
    "refuse_what_needs_later",
]


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


NAMES_START = _number(_installed) >= (4, 2)
"""Whether Spark names the start of a micro-batch, and a limit, when it asks a stream for the end."""


def needs_pyspark() -> MissingDependencyError:
    """The error for a PySpark without Python data sources, and for none."""
    found = f"and {_installed} is installed" if _installed else "which is not installed"
    return MissingDependencyError(f"loadwise.spark_source needs PySpark 4.0 or later, {found}: {pip_install('spark')}")


def refuse_what_needs_later(options: Mapping[str, str], *, streaming: bool) -> None:
    """Raise `OptionError` for an option that this PySpark cannot keep; names of options may be in any case."""
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


def arrow_schema(schema: Any) -> Any:
    """The Arrow schema that Spark compares a source's batches with, column by column and to the letter.

    It takes pyarrow. Before 4.2 timestamps are in UTC always.
    """
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - imports pyarrow

    takes_timezone = "timezone" in signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, timezone="UTC") if takes_timezone else to_arrow_schema(schema)
