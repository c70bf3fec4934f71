"""The plan as one self-contained page: a picture of each resource, before and after, and the table. Pure."""

from __future__ import annotations

from html import escape

from loadwise.balance.amounts import amount, relative_amount, unit_of
from loadwise.balance.plan import Plan
from loadwise.balance.table import MEANINGS, about, heads, notes, rows, summary
from loadwise.report.bar_chart import BarChart
from loadwise.report.page import definitions, document, table

_LEAST_SLOT = 22
"""Narrower slots have no room for a broker's id."""

_STYLE = """
svg .before { fill: var(--rule); stroke: var(--soft); stroke-width: 0.5; }
svg .after { fill: var(--bar); }
svg .after.high { fill: var(--bad); }
svg .target { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 5 4; }
"""


def render(plan: Plan, footer: str) -> str:
    """The page as HTML text."""
    parts = [
        "<h1>The brokers of a cluster, before and after the plan</h1>",
        f'<p class="lead">{escape(about(plan))} {escape(summary(plan))}</p>',
        *(f'<p class="warning">{escape(note)}</p>' for note in notes(plan)),
        "<p>Each broker has a grey bar before the plan and a blue one after it. A bar that stays above the broker's"
        " share plus a tenth, the dashed line where all are equal, is red.</p>",
        '<div class="panels">',
        *(_figure(plan, resource) for resource in range(len(plan.cluster.resources))),
        "</div>",
        "<h2>In numbers</h2>",
        table(heads(plan), [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows(plan)]),
        definitions(MEANINGS),
        f"<footer>{escape(footer)}</footer>",
    ]
    return document("loadwise balance: a plan for a cluster", parts, style=_STYLE)


def _figure(plan: Plan, resource: int) -> str:
    name, say = plan.cluster.resources[resource], relative_amount(plan, resource)
    before, after = (plan.limits.relative(load)[:, resource].max() for load in (plan.before, plan.after))
    of = "of its capacity" if plan.limits.by_capacity[resource] else "times the mean"
    told = f"busiest broker {say(before)} → {say(after)} {of}"
    return (
        f"<figure><figcaption><b>{name}</b><span>{told}</span></figcaption>\n"
        f"{_picture(plan, resource, f'{name}: {told}')}</figure>"
    )


def _picture(plan: Plan, resource: int, label: str) -> str:
    before, after = plan.before[:, resource].tolist(), plan.after[:, resource].tolist()
    equal = plan.limits.target[:, resource].min() == plan.limits.target[:, resource].max()
    target = float(plan.limits.target[0, resource]) if equal else None
    above = {broker.id for broker in plan.above(resource)}
    unit = unit_of(plan.cluster.resources[resource])
    chart = BarChart(len(before), max(*before, *after, target or 0.0))
    parts = chart.begin(label, lambda value: amount(value, unit))
    for index, broker in enumerate(plan.cluster.brokers):
        bars = (("before", before[index], 0.12), ("after high" if broker.id in above else "after", after[index], 0.5))
        for style, load, at in bars:
            title = f"broker {broker.id} {style.split()[0]}: {amount(load, unit)}"
            parts.append(chart.bar(style, index, load, title, at=at, width=0.38))
        if chart.slot >= _LEAST_SLOT:
            parts.append(chart.name(index, str(broker.id)))
    parts += [chart.axis(), *([] if target is None else [chart.level("target", target)]), "</svg>"]
    return "\n".join(parts)
