"""Tables on the terminal: ``loadwise compare``'s by rich where it is installed, and any in plain text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from loadwise.cli.console import console
from loadwise.compare.columns import COLUMNS, best
from loadwise.compare.comparison import Comparison
from loadwise.counted import counted
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


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines, in columns: the first to the left, the others to the right."""
    first, *others = (max(map(len, cells)) for cells in zip(*rows, strict=True))
    return [
        "  ".join([name.ljust(first), *(cell.rjust(width) for cell, width in zip(cells, others, strict=True))])
        for name, *cells in rows
    ]


def table(comparison: Comparison, width: int) -> RenderableType:
    """The table in ``width`` characters; its columns move together if it would not fit."""
    from rich.console import Console
    from rich.measure import Measurement

    roomy = _table(comparison, padding=1)
    console = Console(width=10 * width)
    fits = Measurement.get(console, console.options, roomy).maximum <= width
    return roomy if fits else _table(comparison, padding=0)


def _table(comparison: Comparison, padding: int) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    rows = comparison.rows
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False, padding=(0, 0, 0, padding))
    table.add_column("assignor", no_wrap=True, vertical="bottom")
    winners = {}
    for column in COLUMNS:
        # Two lines for "moved load" and "max/mean", so that eighty characters hold it all.
        table.add_column(
            column.name.replace(" ", "\n").replace("/", "/\n"), justify="right", no_wrap=True, vertical="bottom"
        )
        winners[column.name] = best(column, rows)
    for index, row in enumerate(rows):
        cells = [
            Text(column.text(column.number(row)), "green" if index in winners[column.name] else "")
            for column in COLUMNS
        ]
        table.add_row(row.assignor, *cells)
    return table
