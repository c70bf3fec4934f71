"""The page: a table of all scenes, and the highest utilisation over the day under some of the assignors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from benchmarks.live.figures import Summary
from loadwise.report.page import document, table

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 560, 170, 40, 22
_POINTS = 360
_TOP = 2.0
_COLOURS = {"loadwise": "#2563c9", "round robin": "#c2620a", "all-knowing": "#17875a"}


def page(results: Mapping[str, Mapping[str, Summary]], courses: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Results and courses by scene and assignor; a course is the highest utilisation of each second."""
    rows = [
        f"<tr><td>{escape(scene)}</td><td>{escape(name)}</td><td>{it.ratio:.3f}</td>"
        f"<td>{it.worst_ratio:.3f}</td><td>{it.avoidable:.2%}</td><td>{it.worst_avoidable:.2%}</td>"
        f"<td>{it.for_load:.1f}</td><td>{it.moved_of_greedy:.2%}</td><td>{it.recovered_s:.0f}</td></tr>"
        for scene, of_scene in results.items()
        for name, it in of_scene.items()
    ]
    heads = (
        "scene",
        "assignor",
        "utilisation",
        "worst seed",
        "overload",
        "worst seed",
        "for the load",
        "moved, of greedy's",
        "back s",
    )
    panels = [
        f"<figure><figcaption><b>{escape(scene)}</b><span>{_legend(lines)}</span></figcaption>{svg(lines)}</figure>"
        for scene, lines in courses.items()
    ]
    body = [
        "<h1>A group over a day</h1>",
        '<p class="lead">The highest utilisation of a member, by true rates and speeds: above 1 it falls behind.</p>',
        '<div class="panels">',
        *panels,
        "</div><h2>Figures</h2>",
        table(heads, rows),
    ]
    return document("loadwise: a group over a day", body)


def svg(lines: Mapping[str, Sequence[float]]) -> str:
    """One picture: time to the right, the highest utilisation upwards, a line an assignor."""
    width, height = _WIDTH - _LEFT, _HEIGHT - _BOTTOM
    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" xmlns="http://www.w3.org/2000/svg">']
    for level in (0.0, 0.5, 1.0, 1.5, 2.0):
        y = height * (1 - level / _TOP)
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH}" y2="{y:.1f}" stroke="#dfe3e8"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" font-size="11">{level:.1f}</text>')
    for name, course in lines.items():
        means = [float(chunk.mean()) for chunk in np.array_split(np.minimum(course, _TOP), min(_POINTS, len(course)))]
        points = " ".join(
            f"{_LEFT + width * number / len(means):.1f},{height * (1 - mean / _TOP):.1f}"
            for number, mean in enumerate(means)
        )
        colour = _COLOURS.get(name, "#8a94a3")
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.6" points="{points}"/>')
    parts.append(f'<text x="{_LEFT}" y="{_HEIGHT - 4}" font-size="11">0 h</text>')
    parts.append(f'<text x="{_WIDTH}" y="{_HEIGHT - 4}" text-anchor="end" font-size="11">the end</text></svg>')
    return "".join(parts)


def _legend(lines: Mapping[str, object]) -> str:
    return " ".join(f'<b style="color:{_COLOURS.get(name, "#8a94a3")}">{escape(name)}</b>' for name in lines)
