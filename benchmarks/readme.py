"""The README's table and picture: ``make readme`` plays the second act of the demo, keeps what happened, and draws it.

Both show one run, which is kept in ``docs/img/demo.json``. ``python -m benchmarks.readme --drawn`` plays nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Sequence

from benchmarks import ROOT
from loadwise.demo.arrivals import PARTITIONS
from loadwise.demo.chart import HEIGHT, WIDTH, Axes, Line, Mark, axes, panel
from loadwise.demo.cluster import own_coordinator
from loadwise.demo.live_group import Moment
from loadwise.demo.run import STREAM_ASSIGNORS
from loadwise.demo.second_act import MEMBERS, Course, Script, play
from loadwise.demo.stream_page import calm

README = ROOT / "README.md"
RUN = ROOT / "docs" / "img" / "demo.json"
PICTURE = ROOT / "docs" / "img" / "demo.svg"
TABLE = re.compile(r"(<!-- begin: make readme -->\n).*?(<!-- end -->)", re.DOTALL)

STREAM_S = 100.0
SHOWN = ("weighted", "roundrobin")
LEGEND_HEIGHT = 34
STYLE = """
svg { font-family: system-ui, sans-serif; --ink: #1d2430; --soft: #5b6575; --paper: #ffffff; --rule: #dfe3e8;
  --a0: #17875a; --a1: #c0392b; }
@media (prefers-color-scheme: dark) { svg { --ink: #e6e9ee; --soft: #9aa5b5; --paper: #12161c; --rule: #2d3541;
  --a0: #4cc38f; --a1: #f07565; } }
text { font-size: 12px; fill: var(--soft); }
.title { font-size: 14px; font-weight: 600; fill: var(--ink); }
.paper { fill: var(--paper); }
.grid { stroke: var(--rule); }
.axis { stroke: var(--soft); }
.mark { stroke: var(--soft); stroke-dasharray: 4 4; }
text.mark { stroke: var(--paper); stroke-width: 4px; stroke-dasharray: none; paint-order: stroke; fill: var(--ink); }
.line { fill: none; stroke-width: 2; }
.a0 { stroke: var(--a0); } .a1 { stroke: var(--a1); }
"""


async def played() -> str:
    """Play the second act of ``make demo``, and answer what happened as JSON."""
    script = Script.of_length(STREAM_S, STREAM_ASSIGNORS)
    async with own_coordinator("stream", PARTITIONS) as cluster:
        courses = await play(cluster, script, lambda at_s: print(f"\r{at_s:.0f} of {STREAM_S:.0f} s", end=""))
    print()
    groups = {
        course.assignor: {
            "rebalances": course.rebalances,
            "worst_lag": [[round(moment.at_s, 1), moment.worst_lag] for moment in course.moments],
        }
        for course in courses
    }
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(group)}" for name, group in groups.items())
    return f"{{\n{lines}\n}}\n"


def kept() -> list[Course]:
    """The run that is kept, the group that was least late first."""
    groups = json.loads(RUN.read_text())
    script = Script.of_length(STREAM_S, tuple(groups))
    return [
        Course(
            assignor=name,
            moments=[Moment(at_s, worst_lag) for at_s, worst_lag in group["worst_lag"]],
            rebalances=group["rebalances"],
            script=script,
        )
        for name, group in groups.items()
    ]


def table(courses: Sequence[Course]) -> str:
    """How each group did."""
    script = courses[0].script
    lines = [
        ("", *(course.assignor for course in courses)),
        ("---", *["---:"] * len(courses)),
        ("lag of the slowest member, mean", *(f"{course.late_s:.1f} s" for course in courses)),
        ("its largest lag, records", *(f"{course.peak:,}" for course in courses)),
        ("recovery after the shift", *(calm(course.recovered_s(script.shift_s, script.crash_s)) for course in courses)),
        ("rebalances", *(str(course.rebalances) for course in courses)),
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def picture(courses: Sequence[Course]) -> str:
    """The lag of the worst member over time, under ``weighted`` and round robin, as an SVG file."""
    by_name = {course.assignor: course for course in courses}
    shown = [by_name[name] for name in SHOWN]
    script = shown[0].script
    most = max(moment.worst_lag for course in shown for moment in course.moments)
    ends = axes(script.end_s, most)
    at = Axes(ends.x_max, ends.y_max, "seconds", "records that wait for the member that is worst off")
    lines = [
        Line(course.assignor, f"a{index}", [(moment.at_s, float(moment.worst_lag)) for moment in course.moments])
        for index, course in enumerate(shown)
    ]
    marks = [Mark(script.shift_s, "the hot keys move", ""), Mark(script.crash_s, "a member is killed", "")]
    summary = ", ".join(f"{course.assignor} {course.late_s:.1f} s behind on average" for course in shown)
    title = f"{MEMBERS} members, {script.arrival_per_s:,.0f} records/s"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + LEGEND_HEIGHT}" role="img">',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT + LEGEND_HEIGHT}"/>',
        f'<text class="title" x="62" y="22">{title}</text>',
    ]
    for index, course in enumerate(shown):
        x = 330 + 110 * index
        parts.append(f'<line class="line a{index}" x1="{x}" y1="17" x2="{x + 22}" y2="17"/>')
        parts.append(f'<text x="{x + 28}" y="21">{course.assignor}</text>')
    chart = panel("Lag of the worst member", summary, at, lines, marks)
    placed = f'<svg y="{LEGEND_HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return "\n".join([*parts, chart.replace("<svg", placed, 1), "</svg>\n"])


def main() -> None:
    """Play, unless the kept run is to be drawn again, and write all of it."""
    if "--drawn" not in sys.argv:
        RUN.write_text(asyncio.run(played()))
    courses = kept()
    PICTURE.write_text(picture(courses))
    README.write_text(TABLE.sub(lambda found: f"{found[1]}{table(courses)}{found[2]}", README.read_text()))


if __name__ == "__main__":
    main()
