"""Bar charts as SVG text: the load of every member, against the mean. Colours are CSS, so that the page has them."""

from __future__ import annotations

from collections.abc import Sequence

from loadwise.compare.columns import amount
from loadwise.report.bar_chart import LEFT, TOP, BarChart

_CHARACTER = 7.0
"""About the width of one, of text as small as labels are."""
_TOO_HIGH = 1.1
"""A bar this many times as high as the ideal is red."""
_LEAST_LABEL = 3
"""A member's name that would be cut shorter than this is left out."""

STYLE = """
svg .bar { fill: var(--bar); }
svg .bar.high { fill: var(--bad); }
svg .mean { stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 5 4; }
svg text.mean { stroke: none; fill: var(--ink); }
svg .ideal { stroke: var(--bad); stroke-width: 1.5; }
svg text.ideal { stroke: none; fill: var(--bad); }
"""


def bars(
    title: str, summary: str, names: Sequence[str], loads: Sequence[float], *, mean: float, top: float, bound: float
) -> str:
    """One chart as an SVG element: a bar a member, those that are too high in another colour, lines at mean and ideal.

    ``top`` is the highest value of all charts that are to be compared by eye. ``summary`` tells in words what is shown.
    No assignment gives a highest load below ``bound``; a bar is too high when it is clearly above that.
    """
    chart = BarChart(len(loads), top)
    parts = chart.begin(f"{title}: {summary}", amount)
    room = int(chart.slot / _CHARACTER)
    labels = _shortened(names, room)
    for index, (name, load) in enumerate(zip(names, loads, strict=True)):
        style = "bar high" if load > bound * _TOO_HIGH else "bar"
        parts.append(chart.bar(style, index, load, f"{name}: {amount(load)}", at=0.14, width=0.72))
        if room >= _LEAST_LABEL:
            parts.append(chart.name(index, labels[index]))
    parts.append(chart.axis())
    parts.append(chart.level("mean", mean))
    parts.append(f'<line class="mean" x1="{LEFT}" y1="{TOP - 14}" x2="{LEFT + 22}" y2="{TOP - 14}"/>')
    parts.append(f'<text class="mean" x="{LEFT + 28}" y="{TOP - 10}">mean {amount(mean)}</text>')
    parts.append(chart.level("ideal", bound))
    parts.append(f'<line class="ideal" x1="{LEFT + 150}" y1="{TOP - 14}" x2="{LEFT + 172}" y2="{TOP - 14}"/>')
    parts.append(f'<text class="ideal" x="{LEFT + 178}" y="{TOP - 10}">ideal {amount(bound)}</text>')
    parts.append("</svg>")
    return "\n".join(parts)


def _shortened(names: Sequence[str], room: int) -> list[str]:
    """Names that fit, without the beginning that all of them share: what tells members apart stays."""
    if all(len(name) <= room for name in names):
        return list(names)
    # The first and the last in order share what all of them share.
    first, last = min(names), max(names)
    shared = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    ends = [f"\u2026{name[shared:]}" if shared else name for name in names]
    return [end if len(end) <= room else f"{end[: room - 1]}\u2026" for end in ends]
