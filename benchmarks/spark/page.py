"""The results as one self-contained page: the goals, and a picture and a table of every scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from benchmarks.spark.readers import OURS, READY
from benchmarks.spark.results import Goal, Measured, Results, Scenario, amount
from loadwise.report.page import definitions, document, table
from loadwise.report.scale import ticks

WIDTH = 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 208, 62, 10, 34
_ROW = 30

MEANINGS = [
    ("wall", "from before the query is planned to its answer; of a micro-batch, Spark's triggerExecution"),
    ("CPU", "seconds of the JVM and of all Python processes below it; the broker's are left out"),
    ("longest/mean", "how long the longest task ran, by the mean of all: 1 is perfect"),
    (READY, "a Python source that reads nothing and hands over ready-made batches: what Spark itself takes"),
    ("tuned", "kafka.fetch.max.wait.ms=10, kafka.max.poll.records=20000, kafka.receive.buffer.bytes=1 MiB"),
]

STYLE = """
:root { --ours: #2563c9; --theirs: #8a94a3; }
@media (prefers-color-scheme: dark) { :root { --ours: #6ea3f7; --theirs: #8b95a5; } }
svg .ours { fill: var(--ours); } svg .theirs { fill: var(--theirs); } svg .cpu { opacity: 0.45; }
svg text.name { fill: var(--ink); }
.missed { color: var(--bad); } .reached { color: var(--good); }
"""


def render(results: Results, found: Sequence[Goal], footer: str) -> str:
    """The page as HTML text."""
    figures = [_figure(scenario, readers) for scenario, readers in results.items()]
    goals = [
        f"<tr><td>{escape(goal.text)}</td><td>{goal.value:.2f}</td><td>{goal.bound}</td>"
        f'<td class="{goal.verdict}">{goal.verdict}</td></tr>'
        for goal in found
    ]
    parts = [
        "<h1>Reading Kafka from Spark</h1>",
        f'<p class="lead">format("{OURS}") beside Spark\'s own format("kafka"), in one session and on the same topics.'
        " Long bars are wall time, pale ones CPU time.</p>",
        f'<div class="panels">{"".join(figures)}</div>',
        "<h2>What is to be reached</h2>",
        table(["goal", "measured", "at most", ""], goals),
        "<h2>What the numbers mean</h2>",
        definitions(MEANINGS),
        f"<footer>{escape(footer)}</footer>",
    ]
    return document("loadwise: reading Kafka from Spark", parts, style=STYLE)


def _figure(scenario: Scenario, readers: Mapping[str, Measured]) -> str:
    where = str(scenario).removeprefix(f"{scenario.name}, ")
    caption = f"<figcaption><b>{escape(scenario.name)}</b><span>{where}</span></figcaption>"
    return f"<figure>{caption}\n{_bars(scenario, readers)}</figure>"


def _bars(scenario: Scenario, readers: Mapping[str, Measured]) -> str:
    """Two bars for each reader, wall and CPU time, and the balance of its tasks."""
    height = _TOP + _ROW * len(readers) + _BOTTOM
    right, bottom = WIDTH - _RIGHT, height - _BOTTOM
    unit, factor = ("ms", 1000) if scenario.micro else ("s", 1)
    scale = ticks(factor * max(max(row.wall_s, row.cpu_s) for row in readers.values()))

    def long(seconds: float) -> float:
        return (right - _LEFT) * factor * seconds / scale[-1]

    worded = ", ".join(f"{name} {amount(row.wall_s, scenario)} {unit}" for name, row in readers.items())
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(f"{scenario}, wall time: {worded}")}">'
    ]
    for value in scale:
        at = _LEFT + long(value / factor)
        parts.append(f'<line class="grid" x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{bottom}"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 15}" text-anchor="middle">{value:g} {unit}</text>')
    parts.append(f'<text x="{WIDTH - 4}" y="{height - 4}" text-anchor="end">longest/mean</text>')
    for index, (name, row) in enumerate(readers.items()):
        y, side = _TOP + _ROW * index, "ours" if name.startswith(OURS) else "theirs"
        text = f"{name}: wall {amount(row.wall_s, scenario)} {unit}, CPU {amount(row.cpu_s, scenario)} {unit}"
        parts.append(f'<text class="name" x="{_LEFT - 10}" y="{y + 17}" text-anchor="end">{escape(name)}</text>')
        parts.append(
            f'<g><title>{escape(text)}</title><rect class="{side}" x="{_LEFT}" y="{y + 5}"'
            f' width="{long(row.wall_s):.1f}" height="12"/><rect class="{side} cpu" x="{_LEFT}" y="{y + 18}"'
            f' width="{long(row.cpu_s):.1f}" height="5"/></g>'
        )
        if row.longest_over_mean is not None:
            parts.append(f'<text x="{WIDTH - 4}" y="{y + 17}" text-anchor="end">{row.longest_over_mean:.2f}</text>')
    return "\n".join([*parts, "</svg>"])
