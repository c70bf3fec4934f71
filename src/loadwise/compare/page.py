"""The comparison as one self-contained page: the table, and a picture of every assignor's loads."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from loadwise.compare.bars import STYLE, bars
from loadwise.compare.columns import COLUMNS, best
from loadwise.compare.comparison import Comparison, Row
from loadwise.report.page import definitions, document, table


def render(comparison: Comparison, footer: str) -> str:
    """The page as HTML text."""
    top = max(row.measured.highest for row in comparison.rows)
    unit = comparison.group.load_unit
    uneven = bool((comparison.group.capacity != comparison.group.capacity[0]).any())
    parts = [
        "<h1>One group, every assignor</h1>",
        f'<p class="lead">{escape(comparison.about)}</p>',
        *(f"<p>{escape(note)}</p>" for note in comparison.notes),
        f"<h2>Load of every member{escape(f', in {unit}') if unit else ''}</h2>",
        "<p>The red line is the ideal: no assignment has a lower highest bar. Bars that are more than 10 % above it are"
        " red. The dashed line is the mean. All pictures have the same scale"
        + (", and a bar is the load for each unit of capacity." if uneven else ".")
        + "</p>",
        '<div class="panels">',
        *(_figure(row, top, comparison.labels) for row in comparison.rows),
        "</div>",
        "<h2>In numbers</h2>",
        _table(comparison),
        definitions([(column.name, column.meaning) for column in COLUMNS]),
        f"<footer>{escape(footer)}</footer>",
    ]
    return document("loadwise compare: assignors compared", parts, style=STYLE)


def _table(comparison: Comparison) -> str:
    rows = comparison.rows
    cells = [[f"<td>{escape(row.assignor)}</td>"] for row in rows]
    for column in COLUMNS:
        winners = best(column, rows)
        for index, row in enumerate(rows):
            style = ' class="best"' if index in winners else ""
            cells[index].append(f"<td{style}>{column.text(column.number(row))}</td>")
    return table(["assignor", *(column.name for column in COLUMNS)], [f"<tr>{''.join(row)}</tr>" for row in cells])


def _figure(row: Row, top: float, labels: Mapping[str, str]) -> str:
    group, measured = row.assignment.group, row.measured
    summary = f"max/mean {measured.max_over_mean:.2f}, {measured.moved:,} of {group.size:,} partitions moved"
    loads = (measured.load / group.capacity).tolist()
    picture = bars(
        row.assignor,
        summary,
        [labels.get(member, member) for member in group.members],
        loads,
        mean=measured.mean,
        top=top,
        bound=measured.bound,
    )
    return (
        f"<figure><figcaption><b>{escape(row.assignor)}</b><span>{escape(summary)}</span></figcaption>\n"
        f"{picture}</figure>"
    )
