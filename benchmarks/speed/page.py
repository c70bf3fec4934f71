"""The measurements as one self-contained page: time against size, log-log, a picture a strategy and phase."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape

from benchmarks.speed.measure import AIOKAFKA, JAVA, KAFKA_PYTHON, OURS, SERVER, Cell
from benchmarks.speed.table import HEADS, LEGEND, row
from loadwise.report.page import definitions, document, table

BARE = "the algorithm alone"
RUNNERS = (OURS, BARE, JAVA, SERVER, KAFKA_PYTHON, AIOKAFKA)

Point = tuple[float, float]
"""Partitions, seconds."""

_Axis = Callable[[float], float]
"""A value to its place in the picture."""

_WIDTH, _HEIGHT = 480, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 34, 12, 38
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))

STYLE = """
:root { --ours: #2563c9; --java: #c2620a; --server: #9333c9; --kafka-python: #0e8a6d; --aiokafka: #8a94a3; }
@media (prefers-color-scheme: dark) { :root { --ours: #6ea3f7; --java: #f0a04b; --server: #c58cf0;
  --kafka-python: #45c7a5; --aiokafka: #8b95a5; } }
.lines { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 8px 0 12px; font-size: 13px; color: var(--soft); }
.lines svg { display: inline-block; width: 26px; height: 10px; margin-right: 6px; vertical-align: middle; }
svg polyline { fill: none; stroke-width: 1.8; } svg .guide { stroke: var(--soft); stroke-dasharray: 1 4; }
svg .r0 { stroke: var(--ours); stroke-width: 2.8; } svg .r1 { stroke: var(--ours); stroke-dasharray: 5 3; }
svg .r2 { stroke: var(--java); } svg .r3 { stroke: var(--server); }
svg .r4 { stroke: var(--kafka-python); } svg .r5 { stroke: var(--aiokafka); }
svg circle { fill: var(--paper); stroke-width: 1.8; } svg circle.r1 { stroke-dasharray: none; }
"""


def render(cells: Sequence[Cell], footer: str) -> str:
    """The page as HTML text."""
    series = lines(cells)
    parts = [
        "<h1>How fast are the assignors?</h1>",
        '<p class="lead">Time of a whole call against the number of partitions, both logarithmic. The dotted line grows'
        " as the partitions do: a line that is steeper grows faster than its input.</p>",
        _legend(),
        '<div class="panels">',
        *(
            f"<figure><figcaption><b>{escape(strategy)}</b><span>{escape(phase)}</span></figcaption>\n"
            f"{growth(f'{strategy}, {phase}', mine)}</figure>"
            for (strategy, phase), mine in series.items()
        ),
        "</div>",
        *_tables(cells),
        "<h2>What the numbers mean</h2>",
        definitions(LEGEND),
        f"<footer>{escape(footer)}</footer>",
    ]
    return document("loadwise: speed of assignors", parts, style=STYLE)


def lines(cells: Iterable[Cell]) -> dict[tuple[str, str], dict[str, list[Point]]]:
    """Strategy and phase to the points of each of `RUNNERS` that was measured there, the smallest size first."""
    found: dict[tuple[str, str], dict[str, list[Point]]] = {}
    for cell in sorted(cells, key=lambda cell: cell.size.partitions):
        mine = found.setdefault((cell.strategy, cell.phase), {})
        for runner, measure in ((cell.runner, "names"), (BARE, "bare")):
            if measure in cell.seconds and (runner != BARE or cell.runner == OURS):
                mine.setdefault(runner, []).append((float(cell.size.partitions), cell.seconds[measure]))
    return found


def growth(title: str, series: Mapping[str, Sequence[Point]]) -> str:
    """One picture: a line a runner, and a dotted one of slope 1 through our first point."""
    points = [point for line in series.values() for point in line]
    if not points:
        return f"<p>{escape(title)}: nothing was measured.</p>"
    left, right = _decades(size for size, _ in points)
    bottom, top = _decades(seconds for _, seconds in points)

    def x(size: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (math.log10(size) - left) / (right - left)

    def y(seconds: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (math.log10(seconds) - bottom) / (top - bottom)

    words = "; ".join(f"{who} {line[-1][1]:.3g} s at {line[-1][0]:,.0f}" for who, line in series.items())
    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(f"{title}: {words}")}">']
    for power in range(left, right + 1):
        at = x(10.0**power)
        parts.append(f'<line class="grid" x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{_HEIGHT - _BOTTOM}"/>')
        parts.append(f'<text x="{at:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{10**power:,}</text>')
    for power in range(bottom, top + 1):
        at = y(10.0**power)
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{at:.1f}" x2="{_WIDTH - _RIGHT}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{_seconds(10.0**power)}</text>')
    parts.append(f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 4}" text-anchor="end">partitions</text>')
    if ours := series.get(OURS):
        parts.append(_guide(ours[0], 10.0**right, 10.0**top, x, y))
    for runner in reversed(RUNNERS):  # ours on top
        if line := series.get(runner):
            kind = f"r{RUNNERS.index(runner)}"
            drawn = " ".join(f"{x(size):.1f},{y(seconds):.1f}" for size, seconds in line)
            parts.append(f'<polyline class="{kind}" points="{drawn}"/>')
            parts += [
                f'<circle class="{kind}" cx="{x(size):.1f}" cy="{y(seconds):.1f}" r="3"><title>{escape(runner)},'
                f" {size:,.0f} partitions: {_seconds(seconds)}</title></circle>"
                for size, seconds in line
            ]
    return "\n".join([*parts, "</svg>"])


def _guide(start: Point, widest: float, highest: float, x: _Axis, y: _Axis) -> str:
    size, seconds = start
    times = min(widest / size, highest / seconds)
    ends = f"{x(size):.1f},{y(seconds):.1f} {x(size * times):.1f},{y(seconds * times):.1f}"
    return f'<polyline class="guide" points="{ends}"/>'


def _decades(values: Iterable[float]) -> tuple[int, int]:
    """The powers of ten around the values; never the same one twice."""
    powers = [math.log10(value) for value in values]
    least, most = math.floor(min(powers) + 1e-9), math.ceil(max(powers) - 1e-9)
    return least, max(most, least + 1)


def _seconds(seconds: float) -> str:
    unit, name = next(((unit, name) for unit, name in _UNITS if seconds >= unit * (1 - 1e-9)), _UNITS[-1])
    return f"{seconds / unit:.3g} {name}"


def _legend() -> str:
    stroke = '<svg viewBox="0 0 26 10" aria-hidden="true"><polyline class="r{0}" points="0,5 26,5"/></svg>{1}'
    spans = "".join(f"<span>{stroke.format(index, escape(name))}</span>" for index, name in enumerate(RUNNERS))
    return f'<div class="lines">{spans}</div>'


def _tables(cells: Iterable[Cell]) -> Iterator[str]:
    sizes: dict[str, dict[tuple[str, str], list[Cell]]] = {}
    for cell in cells:
        sizes.setdefault(cell.size.name, {}).setdefault((cell.strategy, cell.phase), []).append(cell)
    for name, cases in sizes.items():
        yield f"<h2>{escape(name)}: milliseconds, megabytes</h2>"
        rows = (row(case) for case in cases.values())
        yield table(HEADS, ("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in each) + "</tr>" for each in rows))
