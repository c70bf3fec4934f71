"""What live scenes keep books with: the offsets that members processed, and the figures that were measured."""

from __future__ import annotations

from collections import Counter

from figures import Figure, Row, lines, rows, table, values
from hypothesis import given
from hypothesis import strategies as st
from offsets import Offsets

RANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)).map(lambda it: (it[0], it[0] + it[1])))


@given(RANGES, RANGES)
def test_offsets_count_like_one_by_one(first, second):
    counted = Counter(offset for start, end in [*first, *second] for offset in range(start, end))
    all_of_it, part = Offsets(), Offsets()
    for start, end in first:
        all_of_it.add(start, end)
    for start, end in second:
        part.add(start, end)
    all_of_it.include(Offsets(part.ranges, part.repeated))
    assert [offset for start, end in all_of_it.ranges for offset in range(start, end)] == sorted(counted)
    assert len(all_of_it) == len(counted)
    assert all_of_it.repeated == counted.total() - len(counted)
    assert all(end < start for (_, end), (start, _) in zip(all_of_it.ranges, all_of_it.ranges[1:], strict=False))


NUMBERS = st.floats(0, 1e6)
ROWS = st.lists(st.builds(Row, st.text(), st.builds(Figure, st.text(), NUMBERS, NUMBERS)))


@given(ROWS)
def test_rows_are_read_as_they_were_written(measured):
    assert rows(lines(measured)) == measured


def test_a_table_shows_the_values_before_and_which_limits_were_missed():
    measured = [
        Row("drift[apache]", Figure("lag, s", 17.46, 30)),
        Row("slow[apache]", Figure("requests", 3, 2)),
        Row("slow", Figure("minutes", 4.25)),
    ]
    assert table(measured, {("slow[apache]", "requests"): "2"}).splitlines()[2:] == [
        "| drift[apache] | lag, s | 17.46 |  | 30 | yes |",
        "| slow[apache] | requests | 3 | 2 | 2 | **no** |",
        "| slow | minutes | 4.25 |  |  |  |",
    ]
    assert [row.figure.ok for row in measured] == [True, False, True]
    assert values(table(measured)) == {
        ("drift[apache]", "lag, s"): "17.46",
        ("slow[apache]", "requests"): "3",
        ("slow", "minutes"): "4.25",
    }
