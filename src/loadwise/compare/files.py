"""Situations out of a case in JSON (`loadwise.assignor.case`), of loads in CSV, and of a history of loads. No I/O."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from loadwise.assignor.case import Case, load_json
from loadwise.assignor.errors import AssignorError
from loadwise.assignor.load.history import TopicHistory
from loadwise.assignor.model import Member
from loadwise.compare.errors import BadInputError
from loadwise.compare.situation import Situation

_COLUMNS = ("topic", "partition", "load")
_MOST_PARTITIONS = 1_000_000
"""Of a topic: a slip in a partition's number must not make a topic that no memory holds."""


def from_case(text: str, name: str) -> Situation:
    """Read a case; ``name`` is the file's, for the error. Raises `BadInputError`.

    The case needs no strategy. If it has one, its options are those of that strategy's algorithm.
    """
    try:
        given = load_json(text)
        if isinstance(given, dict):
            given = {"strategy": "weighted", **given}  # the one that has options
        case = Case.parse(given)
    except AssignorError as error:
        raise BadInputError(f"{name}: {error}") from error
    except json.JSONDecodeError as error:
        raise BadInputError(
            f"{name}, line {error.lineno}, column {error.colno}: not JSON ({error.msg}); write one case as one JSON"
            " object, or give a CSV of loads with --loads"
        ) from error
    except (ValueError, RecursionError) as error:
        raise BadInputError(
            f"{name}: not JSON that can be read ({error}); write one case as one JSON object"
        ) from error
    situation = Situation(
        about=f"The case in {name}.",
        members=case.members,
        partitions=case.partitions,
        load=case.load,
        racks=case.racks,
        tuned=case.assignor,
    )
    return _checked(situation, name)


def from_loads(text: str, name: str, members: int) -> Situation:
    """Read a CSV of loads, for equal members that subscribe to all of its topics. Raises `BadInputError`.

    The header is ``topic,partition,load``, in any order; an empty load is not known. Partitions that are left out,
    below the highest of their topic, are there too, and their loads are not known.
    """
    loads: dict[str, dict[int, float | None]] = {}
    seen: dict[tuple[str, int], int] = {}
    for line, topic, partition, load in _rows(text, name):
        first = seen.setdefault((topic, partition), line)
        if first != line:
            raise BadInputError(
                f"{name}, line {line}: {topic}-{partition} is on line {first} already; keep one of the two"
            )
        loads.setdefault(topic, {})[partition] = load
    partitions = {topic: max(known) + 1 for topic, known in loads.items()}
    listed = {topic: [known.get(number) for number in range(partitions[topic])] for topic, known in loads.items()}
    return _equal_members(listed, name, members)


def from_history(topics: Sequence[TopicHistory], name: str, members: int, *, by: str) -> Situation:
    """The mean hourly load of topics, for as many equal members. Raises `BadInputError`.

    ``by`` is the unit of the histories, ``bytes`` or ``records``.
    """
    loads = {each.topic: [load / each.hours for load in each.load] for each in topics}
    return _equal_members(loads, name, members, unit=f"{by}/h")


def _equal_members(
    loads: Mapping[str, Sequence[float | None]], name: str, members: int, *, unit: str = ""
) -> Situation:
    """Members that subscribe to all topics and own nothing yet."""
    situation = Situation(
        about=f"The loads in {name}; {members} equal members start.",
        members=[
            Member(id=f"member-{number:0{len(str(members))}}", topics=sorted(loads)) for number in range(1, members + 1)
        ],
        partitions={topic: len(known) for topic, known in loads.items()},
        load=loads,
        load_unit=unit,
    )
    return _checked(situation, name)


def _checked(situation: Situation, name: str) -> Situation:
    try:
        situation.snapshot()
    except BadInputError as error:
        raise BadInputError(f"{name}: {error}") from error
    return situation


def _rows(text: str, name: str) -> Iterator[tuple[int, str, int, float | None]]:
    """Line number, topic, partition and load of every row that is not blank."""
    reader = csv.reader(text.removeprefix("\ufeff").splitlines(keepends=True), strict=True)
    header: list[str] | None = None
    try:
        for cells in reader:
            row = [cell.strip() for cell in cells]
            if not any(row):
                continue
            line = reader.line_num
            if header is None:
                header = _header(row, name, line)
                continue
            if len(row) != len(header):
                raise BadInputError(
                    f"{name}, line {line}: {len(row)} fields; expected {len(header)}: {','.join(header)}"
                )
            yield (line, *_fields(dict(zip(header, row, strict=True)), name, line))
    except csv.Error as error:
        raise BadInputError(f"{name}, line {reader.line_num}: not CSV ({error}); expected {_header_line()}") from error
    if header is None:
        raise BadInputError(
            f"{name}: the file is empty; expected the header {_header_line()} and one row per partition"
        )


def _header(row: Sequence[str], name: str, line: int) -> list[str]:
    header = [cell.lower() for cell in row]
    if sorted(header) != sorted(_COLUMNS):
        raise BadInputError(f"{name}, line {line}: the header is {','.join(row)!r}; expected {_header_line()}")
    return header


def _header_line() -> str:
    return ",".join(_COLUMNS)


def _fields(row: dict[str, str], name: str, line: int) -> tuple[str, int, float | None]:
    def refuse(column: str, expected: str) -> NoReturn:
        raise BadInputError(f"{name}, line {line}, column {column}: {row[column]!r}; expected {expected}")

    if not row["topic"]:
        refuse("topic", "a topic's name")
    number = row["partition"]
    if not (number.isascii() and number.isdecimal() and len(number) <= 9 and int(number) < _MOST_PARTITIONS):
        refuse("partition", f"a whole number from 0 to {_MOST_PARTITIONS - 1}")
    load: float | None = None
    if row["load"]:
        try:
            load = float(row["load"])
        except ValueError:
            load = math.nan
        if not (math.isfinite(load) and load >= 0):
            refuse("load", "a finite number of 0 or more, or nothing where it is not known")
    return row["topic"], int(number), load
