"""The one layout for narrow screens: every cell is shown whole, and every line fits."""

from __future__ import annotations

import io
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from loadwise.cli.tables import aligned
from loadwise.folded_table import Head, folded
from loadwise.folding import GAP, fits, parts

WIDTHS = st.lists(st.integers(1, 20), min_size=2, max_size=12)
CELLS = st.text("0123456789,.", min_size=1, max_size=12)
TABLES = st.integers(2, 9).flatmap(
    lambda columns: st.lists(st.lists(CELLS, min_size=columns, max_size=columns), min_size=2, max_size=5)
)


@given(WIDTHS, st.integers(1, 120))
def test_every_column_is_in_one_part_and_the_first_in_all(widths: list[int], room: int) -> None:
    found = parts(widths, room)
    assert [index for part in found for index in part[1:]] == list(range(1, len(widths)))
    assert all(part[0] == 0 for part in found)
    for part in found:
        assert len(part) == 2 or fits([widths[index] for index in part], room)
    for part, following in pairwise(found):
        assert not fits([widths[index] for index in [*part, following[1]]], room), "no part ends early"


@given(TABLES, st.integers(26, 120))
def test_no_cell_is_cut_and_no_line_is_too_long(rows: list[list[str]], room: int) -> None:
    console = Console(file=io.StringIO(), width=room)
    heads, body = rows[0], rows[1:]
    console.print(folded([Head(name) for name in heads], [[Text(cell) for cell in row] for row in body], room))
    assert isinstance(console.file, io.StringIO)
    for lines in (console.file.getvalue().splitlines(), aligned(rows, room)):
        assert max(map(len, lines)) <= room
        assert {cell for row in rows for cell in row} <= {word for line in lines for word in line.split()}


def test_a_table_that_fits_is_one_part() -> None:
    rows = [["a", "b"], ["1", "2"]]
    assert aligned(rows, 2 + GAP) == ["a  b", "1  2"]
    assert aligned([["a", "b", "c"], ["1", "2", "3"]], 2 + GAP) == ["a  b", "1  2", "", "a  c", "1  3"]
