"""A table of rich's that fits narrow screens, the one that all commands print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from loadwise.folding import GAP, fits, parts


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column; it may have several lines."""

    name: str
    is_number: bool = True


def folded(heads: Sequence[Head], rows: Sequence[Sequence[Text]], room: int) -> Group:
    """Return the table for a screen of ``room`` characters, in one part or several. Nothing is cut."""
    lines = [[head.name, *(row[index].plain for row in rows)] for index, head in enumerate(heads)]
    widths = [max(cell_len(line) for text in texts for line in text.split("\n")) for texts in lines]
    # One character apart is better than in two parts.
    gap = 1 if not fits(widths, room) and fits(widths, room, 1) else GAP
    shown: list[Table | Text] = []
    for indexes in parts(widths, room, gap):
        if shown:
            shown.append(Text())
        shown.append(_table([heads[i] for i in indexes], [[row[i] for i in indexes] for row in rows], gap))
    return Group(*shown)


def _table(heads: Sequence[Head], rows: Sequence[Sequence[Text]], gap: int) -> Table:
    # The box itself puts one character between two columns.
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False, padding=(0, 0, 0, gap - 1))
    for head in heads:
        table.add_column(head.name, justify="right" if head.is_number else "left", no_wrap=True, vertical="bottom")
    for row in rows:
        table.add_row(*row)
    return table
