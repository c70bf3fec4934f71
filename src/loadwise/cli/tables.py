"""Tables on the terminal: ``loadwise compare``'s by rich where it is installed, and any in plain text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from loadwise.cli.console import columns, console
from loadwise.compare.columns import COLUMNS, best
from loadwise.compare.comparison import Comparison
from loadwise.counted import counted
from loadwise.folding import GAP, parts
from loadwise.installation import is_installed

if TYPE_CHECKING:
    from rich.console import RenderableType


def show(comparison: Comparison) -> None:
    """Print what was compared, and the table."""
    group = comparison.group
    unit = f", loads in {group.load_unit}" if group.load_unit else ""
    about = (f"{counted(group.size, 'partition')}, {counted(len(group.members), 'member')}{unit}.", *comparison.notes)
    if not is_installed("rich"):
        sys.stdout.write("\n".join([comparison.about, *about, "", *plain(comparison), ""]))
        return
    from rich.text import Text

    printed = console()
    printed.print(Text(comparison.about, "bold"))
    for line in about:
        printed.print(Text(line))
    printed.print()
    printed.print(table(comparison, printed.width))


def plain(comparison: Comparison) -> list[str]:
    """The table as lines of text."""
    rows = [["assignor", *(column.name for column in COLUMNS)]]
    rows += [[row.assignor, *(column.text(column.number(row)) for column in COLUMNS)] for row in comparison.rows]
    return aligned(rows)


def aligned(rows: Sequence[Sequence[str]], room: int | None = None) -> list[str]:
    """Rows of cells as lines, in columns: the first to the left, the others to the right.

    Columns that do not fit in ``room`` characters, by default those of the screen, go below.
    """
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines: list[str] = []
    for indexes in parts(widths, columns() if room is None else room):
        if lines:
            lines.append("")
        lines += [_line([row[i] for i in indexes], [widths[i] for i in indexes]) for row in rows]
    return lines


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, *others = cells
    padded = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
    return (" " * GAP).join([name.ljust(widths[0]), *padded])


def table(comparison: Comparison, width: int) -> RenderableType:
    """The table in ``width`` characters, with the best of each column in green."""
    from rich.text import Text

    from loadwise.folded_table import Head, folded

    # Two lines for "moved load" and "max/mean", so that eighty characters hold it all.
    names = [column.name.replace(" ", "\n").replace("/", "/\n") for column in COLUMNS]
    winners = [best(column, comparison.rows) for column in COLUMNS]
    rows = [
        [
            Text(row.assignor),
            *(
                Text(column.text(column.number(row)), "green" if index in of else "")
                for column, of in zip(COLUMNS, winners, strict=True)
            ),
        ]
        for index, row in enumerate(comparison.rows)
    ]
    return folded([Head("assignor", is_number=False), *map(Head, names)], rows, width)
