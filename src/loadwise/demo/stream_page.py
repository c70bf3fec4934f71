"""The part of the report about the second act: one picture with a line for each assignor, and the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from loadwise.demo.chart import Axes, Line, Mark, axes, panel
from loadwise.demo.second_act import MEMBERS, Course, headline
from loadwise.report.page import table

STYLE = """
:root { --a1: #17875a; --a2: #2563c9; --a3: #d0700f; --a4: #b03a8c; --a5: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --a1: #4cc38f; --a2: #6ea3f7; --a3: #f2a154; --a4: #e27cc2;
  --a5: #9aa5b5; } }
.a1 { stroke: var(--a1); color: var(--a1); } .a2 { stroke: var(--a2); color: var(--a2); }
.a3 { stroke: var(--a3); color: var(--a3); } .a4 { stroke: var(--a4); color: var(--a4); }
.a5 { stroke: var(--a5); color: var(--a5); }
.stream { max-width: 900px; }
"""
_HEADS = (
    "assignor",
    "mean lag<br>seconds",
    "largest lag<br>records",
    "calm after<br>the shift",
    "calm after<br>the crash",
    "rebalances",
)
COLOURS = 5
"""Lines that look different."""


def section(courses: Sequence[Course]) -> list[str]:
    """The section as HTML, for at least one course; the best one comes first."""
    script = courses[0].script
    last_s = max(moment.at_s for course in courses for moment in course.moments)
    ends = axes(last_s, max(1, *(moment.worst_lag for course in courses for moment in course.moments)))
    at = Axes(ends.x_max, ends.y_max, "seconds since the stream began", "lag of the worst member, in records")
    lines = [
        Line(course.assignor, _style(index), [(moment.at_s, float(moment.worst_lag)) for moment in course.moments])
        for index, course in enumerate(courses)
    ]
    marks = [Mark(script.shift_s, "the hot keys move", "join"), Mark(script.crash_s, "a member is killed", "join")]
    legend = "".join(f'<li><i class="{line.style}"></i>{escape(line.name)}</li>' for line in lines)
    return [
        "<h2>A stream that goes on</h2>",
        f"<p>{escape(headline(courses))}</p>",
        f"<p>{script.arrival_per_s:,.0f} records a second arrive. Each group has {MEMBERS} members, and each member can"
        f" process {script.rate_per_s:,.0f} a second. The line is the lag of the member that is worst off.</p>",
        f'<ul class="legend">{legend}</ul>',
        f'<figure class="stream">{panel("Lag of the worst member", headline(courses), at, lines, marks)}</figure>',
        table(
            _HEADS,
            [_row(course, is_best=index == 0 < len(courses) - 1) for index, course in enumerate(courses)],
        ),
    ]


def calm(seconds: float | None) -> str:
    """The time until every lag was under one second of traffic, in words."""
    return "never" if seconds is None else f"{seconds:.0f} s"


def _row(course: Course, *, is_best: bool) -> str:
    script = course.script
    best = ' class="best"' if is_best else ""
    return (
        f"<tr><td>{escape(course.assignor)}</td><td{best}>{course.late_s:.2f}</td><td>{course.peak:,}</td>"
        f"<td>{calm(course.recovered_s(script.shift_s, script.crash_s))}</td>"
        f"<td>{calm(course.recovered_s(script.crash_s, script.end_s))}</td><td>{course.rebalances}</td></tr>"
    )


def _style(index: int) -> str:
    return f"a{min(index + 1, COLOURS)}"
