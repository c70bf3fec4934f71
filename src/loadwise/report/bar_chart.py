"""The frame of a bar chart as SVG text: a grid with its scale, a slot for each bar or group of bars, and an axis.

Colours are CSS classes of the page.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from loadwise.report.scale import ticks

WIDTH, HEIGHT = 560, 210
LEFT, TOP = 72, 32
_RIGHT, _BOTTOM = WIDTH - 14, HEIGHT - 30


class BarChart:
    """The parts of one chart with ``slots`` slots, whose scale reaches ``top``."""

    def __init__(self, slots: int, top: float) -> None:
        self.slot = (_RIGHT - LEFT) / slots
        """The width of a slot."""
        self._scale = ticks(top)

    def begin(self, label: str, amount: Callable[[float], str]) -> list[str]:
        """Return the element's start and the grid; ``amount`` writes a value of the scale."""
        parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">']
        for value in self._scale:
            parts.append(self.level("grid", value))
            parts.append(f'<text x="{LEFT - 8}" y="{self._y(value) + 4:.1f}" text-anchor="end">{amount(value)}</text>')
        return parts

    def bar(self, style: str, index: int, value: float, title: str, *, at: float, width: float) -> str:
        """Return a bar in a slot; ``at`` and ``width`` are shares of the slot."""
        left, top = LEFT + self.slot * index, self._y(value)
        return (
            f'<rect class="{style}" x="{left + self.slot * at:.2f}" y="{top:.1f}" width="{self.slot * width:.2f}"'
            f' height="{_BOTTOM - top:.1f}"><title>{escape(title)}</title></rect>'
        )

    def name(self, index: int, text: str) -> str:
        """Return the text below a slot."""
        middle = LEFT + self.slot * index + self.slot / 2
        return f'<text x="{middle:.1f}" y="{_BOTTOM + 17}" text-anchor="middle">{escape(text)}</text>'

    def axis(self) -> str:
        """Return the line that the bars stand on."""
        return f'<line class="axis" x1="{LEFT}" y1="{_BOTTOM}" x2="{_RIGHT}" y2="{_BOTTOM}"/>'

    def level(self, style: str, value: float) -> str:
        """Return a line across all slots at a value."""
        y = f"{self._y(value):.1f}"
        return f'<line class="{style}" x1="{LEFT}" y1="{y}" x2="{_RIGHT}" y2="{y}"/>'

    def _y(self, value: float) -> float:
        return _BOTTOM - (_BOTTOM - TOP) * value / self._scale[-1]
