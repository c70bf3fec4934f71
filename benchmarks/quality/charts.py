"""The pictures of the benchmark as SVG text. Colours are CSS classes, one an assignor, so that the page has them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from loadwise.report.scale import ticks

WIDTH = 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 104, 28, 10, 40
_ROW = 24
_LEAST, _MOST = 1e-4, 10.0
"""Ends of the logarithmic axis: a hundredth of a per cent over the bound, and ten times the bound more than it."""

STYLE = """
.lines { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 8px 0 12px; font-size: 13px; color: var(--soft); }
.lines svg { display: inline-block; width: 26px; height: 10px; margin-right: 6px; vertical-align: middle; }
:root { --weighted: #2563c9; --greedy: #c2620a; --brooklin-like: #0e8a6d; --lag-based: #9333c9; --stock: #8a94a3; }
@media (prefers-color-scheme: dark) { :root { --weighted: #6ea3f7; --greedy: #f0a04b; --brooklin-like: #45c7a5;
  --lag-based: #c58cf0; --stock: #8b95a5; } }
svg .a { stroke: var(--stock); fill: var(--stock); }
svg .weighted { stroke: var(--weighted); fill: var(--weighted); }
svg .greedy { stroke: var(--greedy); fill: var(--greedy); }
svg .brooklin-like { stroke: var(--brooklin-like); fill: var(--brooklin-like); }
svg .lag-based { stroke: var(--lag-based); fill: var(--lag-based); }
svg .range { stroke-dasharray: 2 3; } svg .roundrobin { stroke-dasharray: 6 3; }
svg text.name { fill: var(--ink); } svg .whisker { stroke-width: 2; opacity: 0.45; }
svg polyline.a { fill: none; stroke-width: 1.6; } svg polyline.weighted { stroke-width: 2.6; }
svg rect.a { stroke: none; }
"""


def evenness(title: str, rows: Mapping[str, tuple[float, float]]) -> str:
    """Mean and worst ratio of each assignor, as a dot and a line from it, on a logarithmic axis of what is over 1."""
    height = _TOP + _ROW * len(rows) + _BOTTOM
    right, bottom = WIDTH - _RIGHT, height - _BOTTOM

    def x(ratio: float) -> float:
        over = min(max(ratio - 1, _LEAST), _MOST)
        return _LEFT + (right - _LEFT) * math.log(over / _LEAST) / math.log(_MOST / _LEAST)

    worded = ", ".join(f"{name} {mean:.3f} (worst {worst:.3f})" for name, (mean, worst) in rows.items())
    parts = [_svg(height, f"{title}: highest load over the bound: {worded}")]
    for over, text in zip((1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0), ("0.01", "0.1", "1", "10", "100", "1000"), strict=True):
        at = x(1 + over)
        parts.append(f'<line class="grid" x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{bottom}"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 15}" text-anchor="middle">{text} %</text>')
    parts.append(
        f'<text x="{right}" y="{height - 6}" text-anchor="end">highest load above the lower bound'
        " (dot: mean, line: to the worst)</text>"
    )
    for index, (name, (mean, worst)) in enumerate(rows.items()):
        y = _TOP + _ROW * (index + 0.5)
        parts.append(f'<text class="name" x="{_LEFT - 12}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>')
        parts.append(
            f'<line class="a {name} whisker" x1="{x(mean):.1f}" y1="{y:.1f}" x2="{x(worst):.1f}" y2="{y:.1f}"/>'
            f'<circle class="a {name}" cx="{x(mean):.1f}" cy="{y:.1f}" r="5"><title>{escape(name)}: mean {mean:.4f},'
            f" worst {worst:.4f}</title></circle>"
        )
    return "\n".join([*parts, "</svg>"])


def movement(title: str, rows: Mapping[str, float]) -> str:
    """Load moved a round by each assignor, as bars: parts of all load."""
    height = _TOP + _ROW * len(rows) + _BOTTOM
    right, bottom = WIDTH - _RIGHT - 44, height - _BOTTOM
    scale = ticks(100 * max(rows.values()))
    worded = ", ".join(f"{name} {moved:.1%}" for name, moved in rows.items())
    parts = [_svg(height, f"{title}: load moved a round: {worded}")]
    for value in scale:
        at = _LEFT + (right - _LEFT) * value / scale[-1]
        parts.append(f'<line class="grid" x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{bottom}"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 15}" text-anchor="middle">{value:g} %</text>')
    parts.append(
        f'<text x="{WIDTH - _RIGHT}" y="{height - 6}" text-anchor="end">load taken from members that are still there,'
        " a round</text>"
    )
    for index, (name, moved) in enumerate(rows.items()):
        y, long = _TOP + _ROW * index, (right - _LEFT) * 100 * moved / scale[-1]
        parts.append(f'<text class="name" x="{_LEFT - 12}" y="{y + 16}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect class="a {name}" x="{_LEFT}" y="{y + 5}" width="{max(long, 0.5):.1f}" height="14"/>')
        parts.append(f'<text x="{_LEFT + long + 6:.1f}" y="{y + 16}">{moved:.1%}</text>')
    return "\n".join([*parts, "</svg>"])


def over_time(title: str, across: str, up: str, lines: Mapping[str, Sequence[float]], *, least: float = 0.0) -> str:
    """One line an assignor, a value a round; the vertical axis begins at ``least``."""
    height, left = 300, 56
    right, bottom, top = WIDTH - _RIGHT, height - _BOTTOM, 28
    rounds = max(len(line) for line in lines.values())
    scale = ticks(max(max(line) for line in lines.values()) - least)

    def x(number: int) -> float:
        return left + (right - left) * number / max(rounds - 1, 1)

    def y(value: float) -> float:
        return bottom - (bottom - top) * (value - least) / scale[-1]

    parts = [_svg(height, f"{title}: {up}"), f'<text x="{left - 44}" y="{top - 14}">{escape(up)}</text>']
    for step in scale:
        at = y(least + step)
        parts.append(f'<line class="grid" x1="{left}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{least + step:g}</text>')
    for value in ticks(rounds - 1):
        if value <= rounds - 1:
            at = x(int(value))
            parts.append(f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>')
    parts.append(f'<text x="{right}" y="{height - 6}" text-anchor="end">{escape(across)}</text>')
    for name in sorted(lines, key=lambda name: name == "weighted"):  # ours on top
        points = " ".join(f"{x(number):.1f},{y(value):.1f}" for number, value in enumerate(lines[name]))
        parts.append(f'<polyline class="a {name}" points="{points}"><title>{escape(name)}</title></polyline>')
    return "\n".join([*parts, "</svg>"])


def legend(names: Sequence[str]) -> str:
    """Which line is whose, as HTML."""
    stroke = '<svg viewBox="0 0 26 10" aria-hidden="true"><polyline class="a {0}" points="0,5 26,5"/></svg>{0}'
    return f'<div class="lines">{"".join(f"<span>{stroke.format(escape(name))}</span>" for name in names)}</div>'


def _svg(height: int, words: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(words)}">'
