"""The README's table and picture: ``python -m benchmarks.readme`` writes both, the same on every machine.

The group is that of ``loadwise compare --scenario flights``; then a fourth member joins it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from loadwise.compare.bars import HEIGHT, STYLE, WIDTH, bars
from loadwise.compare.comparison import compare
from loadwise.compare.scenarios import scenario

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "img" / "flights.svg"
TABLE = re.compile(r"(<!-- begin: make readme -->\n).*?(<!-- end -->)", re.DOTALL)

ASSIGNORS = ("range", "roundrobin", "sticky", "weighted")
TITLE_HEIGHT = 34
COLOURS = """
svg { font-family: system-ui, sans-serif; --ink: #1d2430; --soft: #5b6575; --paper: #ffffff; --rule: #dfe3e8;
  --bar: #2563c9; --bad: #c0392b; }
@media (prefers-color-scheme: dark) { svg { --ink: #e6e9ee; --soft: #9aa5b5; --paper: #12161c; --rule: #2d3541;
  --bar: #6ea3f7; --bad: #f07565; } }
text { font-size: 14px; fill: var(--soft); }
.title { font-size: 18px; font-weight: 600; fill: var(--ink); }
.paper { fill: var(--paper); }
.grid { stroke: var(--rule); }
.axis { stroke: var(--soft); }
"""


def table() -> str:
    """What each assignor gives the busiest member, and how much moves when a member joins."""
    start = scenario("flights")
    newcomer = replace(start.members[0], id=f"member-{len(start.members) + 1}")
    first = compare(start, ASSIGNORS, clock=float).rows
    joined = compare(replace(start, members=[*start.members, newcomer], earlier=start), ASSIGNORS, clock=float).rows
    lines = [
        ("", *ASSIGNORS),
        ("---", *["---:"] * len(ASSIGNORS)),
        ("busiest of 3 members, over the mean", *(f"{row.measured.max_over_mean:.2f}" for row in first)),
        ("busiest after a fourth has joined", *(f"{row.measured.max_over_mean:.2f}" for row in joined)),
        ("partitions that moved then, of 36", *(str(row.measured.moved) for row in joined)),
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def picture() -> str:
    """The records of each of the three members, a panel for each assignor, as an SVG file."""
    comparison = compare(scenario("flights"), ASSIGNORS, clock=float)
    top = max(row.measured.highest for row in comparison.rows)
    width, height = 2 * WIDTH, 2 * (HEIGHT + TITLE_HEIGHT)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<style>{COLOURS}{STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
    ]
    for index, row in enumerate(comparison.rows):
        x, y = index % 2 * WIDTH, index // 2 * (HEIGHT + TITLE_HEIGHT)
        measured = row.measured
        summary = f"{row.assignor}: the busiest has {measured.max_over_mean:.2f} times the mean"
        panel = bars(
            row.assignor,
            summary,
            comparison.group.members,
            measured.load.tolist(),
            mean=measured.mean,
            top=top,
            bound=measured.bound,
        )
        placed = f'<svg x="{x}" y="{y + TITLE_HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        parts.append(f'<text class="title" x="{x + 72}" y="{y + 26}">{summary}</text>')
        parts.append(panel.replace("<svg", placed, 1))
    return "\n".join([*parts, "</svg>\n"])


def main() -> None:
    """Write both."""
    PICTURE.write_text(picture())
    README.write_text(TABLE.sub(lambda found: f"{found[1]}{table()}{found[2]}", README.read_text()))


if __name__ == "__main__":
    main()
