"""Where a query starts and ends in each partition: offsets or timestamps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.errors import OptionError
from loadwise.spark_source.options.declared import (
    ENDING_BY_TIMESTAMP,
    ENDING_OFFSETS,
    ENDING_TIMESTAMP,
    STARTING_BY_TIMESTAMP,
    STARTING_OFFSETS,
    STARTING_TIMESTAMP,
    TIMESTAMP_STRATEGY,
    Option,
)
from loadwise.spark_source.options.values import by_partition

LATEST = -1
"""Kafka's and Spark's number for the end of a partition."""
EARLIEST = -2
"""Kafka's and Spark's number for the beginning of a partition."""

_OFFSETS = by_partition('must be \'earliest\', \'latest\' or JSON like {"topic": {"0": 23, "1": -2}}', least=EARLIEST)


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The same end of every partition."""

    option: str
    """The option that sets it, for messages."""
    offset: int
    """`EARLIEST` or `LATEST`."""


@dataclass(frozen=True, slots=True)
class Specific:
    """An offset for each partition; may be `EARLIEST` or `LATEST`."""

    option: str
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """The first record of each partition at or after a time, in ms since the epoch."""

    option: str
    timestamp_ms: int | Mapping[TopicPartition, int]
    latest_if_none: bool
    """Whether a partition without such a record uses its end; otherwise it is an error."""


Bound: TypeAlias = Everywhere | Specific | AtTimestamp


def bounds_of(options: Mapping[str, str], *, streaming: bool) -> tuple[Bound, Bound]:
    """Read where a query starts and ends. Raises `OptionError`."""
    latest_if_none = TIMESTAMP_STRATEGY.read(options) == "latest"
    starting = _bound(
        options,
        (STARTING_TIMESTAMP, STARTING_BY_TIMESTAMP, STARTING_OFFSETS),
        LATEST if streaming else EARLIEST,
        latest_if_none=latest_if_none,
    )
    ending = _bound(options, (ENDING_TIMESTAMP, ENDING_BY_TIMESTAMP, ENDING_OFFSETS), LATEST, latest_if_none=True)
    if not streaming:
        _refuse_end(starting, LATEST, "must not be the latest in a batch query, which would read nothing")
    _refuse_end(ending, EARLIEST, "must not be the earliest in a batch query, which would read nothing")
    _refuse_backwards(starting, ending)
    return starting, ending


def _bound(
    options: Mapping[str, str],
    ways: tuple[Option[int | None], Option[dict[TopicPartition, int] | None], Option[str | None]],
    default: int,
    *,
    latest_if_none: bool,
) -> Bound:
    """Read one side of all ranges: the first way that is given counts."""
    everywhere, by_timestamp, by_offset = ways
    timestamp = everywhere.read(options)
    if timestamp is not None:
        return AtTimestamp(everywhere.name, timestamp, latest_if_none)
    timestamps = by_timestamp.read(options)
    if timestamps is not None:
        return AtTimestamp(by_timestamp.name, timestamps, latest_if_none)
    name, offsets = by_offset.name, by_offset.read(options)
    match offsets and offsets.lower():
        case None:
            return Everywhere(name, default)
        case "":
            raise OptionError(name, "is empty")
        case "earliest":
            return Everywhere(name, EARLIEST)
        case "latest":
            return Everywhere(name, LATEST)
        case _:
            return Specific(name, _OFFSETS(name, offsets or ""))


def _refuse_end(bound: Bound, end: int, why: str) -> None:
    if isinstance(bound, Everywhere) and bound.offset == end:
        raise OptionError(bound.option, why)
    if isinstance(bound, Specific):
        for (topic, partition), offset in bound.offsets.items():
            if offset == end:
                raise OptionError(bound.option, f"{offset} for {topic}-{partition} {why}")


def _refuse_backwards(starting: Bound, ending: Bound) -> None:
    if isinstance(starting, Specific) and isinstance(ending, Specific):
        for place, start in starting.offsets.items():
            end = ending.offsets.get(place, LATEST)
            if start > end >= 0:
                where = f"{place.topic}-{place.partition}"
                raise OptionError(starting.option, f"{where} starts at {start}, after {end}, its {ending.option}")
