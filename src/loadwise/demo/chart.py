"""Line charts as SVG text: backlog over time, a line a member. Colours are CSS classes, so that the page has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from loadwise.report.scale import ticks

WIDTH, HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 22, 42


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its name, its CSS class, and its points in the units of the axes, x ascending."""

    name: str
    style: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line that marks a moment, with a label at the top."""

    x: float
    text: str
    style: str
    anchor: str = "start"
    """Which end of the words is at the line: ``start`` or ``end``."""
    row: int = 0
    """How many lines of text below the top the words stand, where marks lie close together."""


@dataclass(frozen=True, slots=True)
class Axes:
    """The ends of both axes, which all panels of a page share, so that they can be compared by eye."""

    x_max: float
    y_max: float
    x_label: str = "seconds since processing began"
    y_label: str = "records left"

    def x(self, value: float) -> float:
        """Where a time lies in the picture."""
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * value / self.x_max

    def y(self, value: float) -> float:
        """Where a number of records lies in the picture."""
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * value / self.y_max


def axes(x_largest: float, y_largest: float) -> Axes:
    """Axes that end at round numbers and hold the largest values."""
    return Axes(ticks(x_largest)[-1], ticks(y_largest)[-1])


def panel(title: str, summary: str, at: Axes, lines: Sequence[Line], marks: Sequence[Mark]) -> str:
    """One chart as an SVG element; ``summary`` describes it in words, for those who cannot see it."""
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(f"{title}: {summary}")}">',
        *_grid(at),
    ]
    for mark in marks:
        x = at.x(mark.x)
        parts.append(f'<line class="mark {mark.style}" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{at.y(0):.1f}"/>')
    for line in lines:
        points = " ".join(f"{at.x(x):.1f},{at.y(y):.1f}" for x, y in line.points)
        parts.append(
            f'<polyline class="line {line.style}" points="{points}"><title>{escape(line.name)}</title></polyline>'
        )
    for mark in marks:  # on top of all lines, which their halo interrupts
        x, y = at.x(mark.x) + (5 if mark.anchor == "start" else -5), _TOP + 10 + 15 * mark.row
        place = f'x="{x:.1f}" y="{y}" text-anchor="{mark.anchor}"'
        parts.append(f'<text class="mark {mark.style}" {place}>{escape(mark.text)}</text>')
    parts.append("</svg>")
    return "\n".join(parts)


def _grid(at: Axes) -> list[str]:
    left, right, bottom = at.x(0), at.x(at.x_max), at.y(0)
    parts: list[str] = []
    for value in ticks(at.y_max):
        y = at.y(value)
        parts.append(f'<line class="grid" x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{value:,.0f}</text>')
    for value in ticks(at.x_max):
        x = at.x(value)
        parts.append(f'<line class="axis" x1="{x:.1f}" y1="{bottom:.1f}" x2="{x:.1f}" y2="{bottom + 4:.1f}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 17:.1f}" text-anchor="middle">{value:g}</text>')
    parts.append(f'<line class="axis" x1="{left:.1f}" y1="{bottom:.1f}" x2="{right:.1f}" y2="{bottom:.1f}"/>')
    parts.append(f'<text class="label" x="{left:.1f}" y="{_TOP - 9}">{escape(at.y_label)}</text>')
    parts.append(f'<text class="label" x="{right:.1f}" y="{HEIGHT - 6}" text-anchor="end">{escape(at.x_label)}</text>')
    return parts
