"""The report of the demo as a page: the pictures, the table, the verdict, and what was checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from loadwise.demo.chart import Axes, Line, Mark, axes, panel
from loadwise.demo.figures import DEFINITIONS, Figures
from loadwise.demo.group import Outcome
from loadwise.demo.second_act import Course
from loadwise.demo.stream_page import STYLE as STREAM_STYLE
from loadwise.demo.stream_page import section
from loadwise.report.page import definitions, document, table

_STYLE = """
:root { --m1: #2563c9; --m2: #d0700f; --m3: #17875a; --m4: #b03a8c; }
@media (prefers-color-scheme: dark) { :root { --m1: #6ea3f7; --m2: #f2a154; --m3: #4cc38f; --m4: #e27cc2; } }
.legend { display: flex; flex-wrap: wrap; gap: 6px 22px; margin: 14px 0 12px; padding: 0; list-style: none; }
.legend li { display: flex; align-items: center; gap: 8px; }
.legend i { width: 22px; border-top: 3px solid; border-radius: 2px; }
.clients { color: var(--soft); font-size: 13px; margin: 2px 0 4px; }
svg line.mark { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 4 3; }
svg text.mark { fill: var(--ink); paint-order: stroke; stroke: var(--card); stroke-width: 5px; }
svg line.ideal { stroke-dasharray: 1 4; stroke-linecap: round; stroke-width: 2; }
svg text.ideal { fill: var(--soft); }
svg .line { fill: none; stroke-width: 2.25; stroke-linejoin: round; stroke-linecap: round; }
.m1 { stroke: var(--m1); color: var(--m1); } .m2 { stroke: var(--m2); color: var(--m2); }
.m3 { stroke: var(--m3); color: var(--m3); } .m4 { stroke: var(--m4); color: var(--m4); }
.checks { padding: 0; list-style: none; }
.checks li::before { content: "\\2713"; color: var(--good); font-weight: 700; margin-right: 10px; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that the page shows."""

    setting: str
    """One paragraph: the stream, the group, the pace, the cluster."""
    outcomes: Sequence[Outcome]
    rows: Sequence[Figures]
    """The numbers of each outcome, in the same order."""
    courses: Sequence[Course]
    """How each group did in the second act, the best first; empty where that was left out."""
    capacity: Sequence[str]
    """The verdict on capacity, a sentence or two."""
    checks: Sequence[str]
    """What was checked and held."""
    warning: str | None
    """What makes the times doubtful, if anything does."""
    footer: str


def render(report: Report) -> str:
    """The page as HTML text."""
    at = axes(
        max(max(outcome.drained_s, row.ideal_s) for outcome, row in zip(report.outcomes, report.rows, strict=True)),
        max(max(sample.backlog) for outcome in report.outcomes for sample in outcome.samples),
    )
    members = max(len(outcome.plan.clients) for outcome in report.outcomes)
    parts = [
        "<h1>One skewed stream, every assignor</h1>",
        f'<p class="lead">{escape(report.setting)}</p>',
        *(section(report.courses) if report.courses else ()),
        "<h2>A backlog that is drained</h2>",
        "<p>Records that each member still has to process in the partitions that it owns. All panels have the same"
        " scales: the sooner and the more together the lines reach the ground, the better.</p>",
        _legend(members),
        '<div class="panels">',
        *(_figure(outcome, row, at) for outcome, row in zip(report.outcomes, report.rows, strict=True)),
        "</div>",
        "<h2>In numbers</h2>",
        _table(report.rows, members),
        *([f'<p class="warning">{escape(report.warning)}</p>'] if report.warning else []),
        "<h2>Is the group fast enough?</h2>",
        *(f"<p>{escape(sentence)}</p>" for sentence in report.capacity),
        "<h2>Checked</h2>",
        f'<ul class="checks">{"".join(f"<li>{escape(check)}</li>" for check in report.checks)}</ul>',
        "<h2>What the numbers mean</h2>",
        definitions(DEFINITIONS),
        f"<footer>{escape(report.footer)}</footer>",
    ]
    return document("loadwise demo: assignors compared", parts, style=_STYLE + STREAM_STYLE)


def _legend(members: int) -> str:
    names = [f"member {number}" for number in range(1, members)] + [f"member {members}, which joins half-way"]
    items = "".join(f'<li><i class="m{number}"></i>{name}</li>' for number, name in enumerate(names, 1))
    return f'<ul class="legend">{items}</ul>'


def _figure(outcome: Outcome, row: Figures, at: Axes) -> str:
    plan = outcome.plan
    summary = f"drained in {row.drained_s:.1f} s, {row.against_ideal:.2f} times the ideal"
    lines = []
    for number, client in enumerate(plan.clients):
        points = [(sample.at_s, float(sample.backlog[number])) for sample in outcome.samples]
        if number == plan.late:
            points = [point for point in points if point[0] >= outcome.joined_s]
        lines.append(Line(f"member {number + 1} ({client})", f"m{number + 1}", points))
    marks = [
        Mark(outcome.joined_s, "fourth joins", "join", anchor="end"),
        Mark(row.ideal_s, f"ideal {row.ideal_s:.1f} s", "ideal"),
        Mark(row.drained_s, "drained", "end", anchor="end" if row.drained_s > at.x_max * 0.85 else "start", row=1),
    ]
    clients = ", ".join(plan.clients) if len(set(plan.clients)) > 1 else f"all {plan.clients[0]}"
    return (
        f"<figure><figcaption><b>{escape(plan.assignor)}</b><span>{escape(summary)}</span></figcaption>\n"
        f"{panel(plan.assignor, summary, at, lines, marks)}\n"
        f'<p class="clients">clients of members 1 to {len(plan.clients)}: {escape(clients)}</p></figure>'
    )


def _table(rows: Sequence[Figures], members: int) -> str:
    heads = [
        "assignor",
        *(f"member {number}<br>records" for number in range(1, members + 1)),
        "max/mean<br>3 members<br><small>largest first</small>",
        "max/mean<br>4 members<br><small>largest first</small>",
        "drained<br>seconds",
        "drained /<br>ideal",
        "keeps up to<br>records/s",
        "rebal-<br>ances",
        f"moved<br>of {rows[0].partitions}",
    ]
    best = {
        "first": min(row.max_mean_first for row in rows),
        "last": min(row.max_mean_last for row in rows),
        "drained": min(row.drained_s for row in rows),
        "keeps": max(row.keeps_up_per_s for row in rows),
        "moved": min(row.moved for row in rows),
    }

    def cell(text: str, is_best: bool = False) -> str:
        return f'<td class="best">{text}</td>' if is_best and len(rows) > 1 else f"<td>{text}</td>"

    body = (
        "<tr>"
        + cell(escape(row.assignor))
        + "".join(cell(f"{count:,}") for count in row.records)
        + cell(f"{row.max_mean_first:.2f} <small>{row.greedy_first:.2f}</small>", row.max_mean_first == best["first"])
        + cell(f"{row.max_mean_last:.2f} <small>{row.greedy_last:.2f}</small>", row.max_mean_last == best["last"])
        + cell(f"{row.drained_s:.1f}", row.drained_s == best["drained"])
        + cell(f"{row.against_ideal:.2f}", row.drained_s == best["drained"])
        + cell(f"{row.keeps_up_per_s:,.0f}", row.keeps_up_per_s == best["keeps"])
        + cell(str(row.rebalances))
        + cell(str(row.moved), row.moved == best["moved"])
        + "</tr>"
        for row in rows
    )
    return table(heads, body)
