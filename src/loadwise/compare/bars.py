"""Bar charts as SVG text: the load of every member, against the mean. Colours are CSS, so that the page has them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from loadwise.compare.columns import amount
from loadwise.report.scale import ticks

WIDTH, HEIGHT = 560, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 14, 32, 30
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
    scale = ticks(top)
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    slot = (right - _LEFT) / len(loads)

    def y(value: float) -> float:
        return bottom - (bottom - _TOP) * value / scale[-1]

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(f"{title}: {summary}")}">']
    for value in scale:
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{y(value):.1f}" x2="{right}" y2="{y(value):.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{amount(value)}</text>')
    room = int(slot / _CHARACTER)
    labels = _shortened(names, room)
    for index, (name, load) in enumerate(zip(names, loads, strict=True)):
        left, style = _LEFT + slot * index, "bar high" if load > bound * _TOO_HIGH else "bar"
        parts.append(
            f'<rect class="{style}" x="{left + slot * 0.14:.2f}" y="{y(load):.1f}" width="{slot * 0.72:.2f}"'
            f' height="{bottom - y(load):.1f}"><title>{escape(name)}: {amount(load)}</title></rect>'
        )
        if room >= _LEAST_LABEL:
            parts.append(
                f'<text x="{left + slot / 2:.1f}" y="{bottom + 17}" text-anchor="middle">{escape(labels[index])}</text>'
            )
    parts.append(f'<line class="axis" x1="{_LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>')
    parts.append(f'<line class="mean" x1="{_LEFT}" y1="{y(mean):.1f}" x2="{right}" y2="{y(mean):.1f}"/>')
    parts.append(f'<line class="mean" x1="{_LEFT}" y1="{_TOP - 14}" x2="{_LEFT + 22}" y2="{_TOP - 14}"/>')
    parts.append(f'<text class="mean" x="{_LEFT + 28}" y="{_TOP - 10}">mean {amount(mean)}</text>')
    parts.append(f'<line class="ideal" x1="{_LEFT}" y1="{y(bound):.1f}" x2="{right}" y2="{y(bound):.1f}"/>')
    parts.append(f'<line class="ideal" x1="{_LEFT + 150}" y1="{_TOP - 14}" x2="{_LEFT + 172}" y2="{_TOP - 14}"/>')
    parts.append(f'<text class="ideal" x="{_LEFT + 178}" y="{_TOP - 10}">ideal {amount(bound)}</text>')
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
