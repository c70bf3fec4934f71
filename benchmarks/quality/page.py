"""The results as tables, and as one self-contained page with those tables and pictures of the long scenes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import accumulate

from benchmarks.quality.play import Score, Summary
from benchmarks.quality.scenes import Scene
from loadwise.demo.chart import Axes, Line, axes, panel
from loadwise.report.page import definitions, document, table

MEANINGS = [
    (
        "ratio",
        "the highest load of a member, in relation to its capacity, over what no assignment can beat; 1 is perfect."
        " Mean over all rounds and seeds, and the worst of them",
    ),
    (
        "moved",
        "load taken from members that are still there, as a share of all load: mean of the rounds after the first."
        " Every such partition is a pause, and a cache or state to be built again",
    ),
    ("crossed", "load that is read from another rack, as a share of all load"),
]
RIVALS = [
    ("range, roundrobin, sticky", "Kafka's own, as loadwise has them: they count partitions and know nothing of load"),
    (
        "lag-based",
        "as kafka-lag-based-assignor: topic by topic the largest lag first, to the member with the fewest partitions of"
        " that topic, then the least lag; from scratch at every rebalance",
    ),
    ("greedy", "the largest first, to whoever has the least load, over all topics; from scratch at every rebalance"),
    (
        "brooklin-like",
        "as Brooklin's LoadBasedPartitionAssigner: what is owned stays for ever, the rest goes largest first",
    ),
    ("weighted", "loadwise's own, with its default parameters: within 5 % of the bound, and little moved"),
]

STYLE = """
.lines { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 8px 0 12px; font-size: 13px; color: var(--soft); }
.lines svg { display: inline-block; width: 26px; height: 10px; margin-right: 6px; vertical-align: middle; }
:root { --weighted: #2563c9; --greedy: #c2620a; --brooklin-like: #0e8a6d; --lag-based: #9333c9; --stock: #8a94a3; }
@media (prefers-color-scheme: dark) { :root { --weighted: #6ea3f7; --greedy: #f0a04b; --brooklin-like: #45c7a5;
  --lag-based: #c58cf0; --stock: #8b95a5; } }
svg .line { fill: none; stroke: var(--stock); stroke-width: 1.6; }
svg .weighted { stroke: var(--weighted); stroke-width: 2.6; } svg .greedy { stroke: var(--greedy); }
svg .brooklin-like { stroke: var(--brooklin-like); } svg .lag-based { stroke: var(--lag-based); }
svg .range { stroke-dasharray: 2 3; } svg .roundrobin { stroke-dasharray: 6 3; }
"""

Results = Mapping[str, Mapping[str, Sequence[Sequence[Score]]]]
"""Scene to assignor to its runs, a run a seed, a score a round."""


def tables(scenes: Sequence[Scene], results: Results) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Title, heads and rows of each table, a row a scene that it concerns."""

    def rows(chosen: Sequence[Scene], cell: Callable[[Summary], str]) -> list[list[str]]:
        return [[scene.name, *(cell(Summary.of(runs)) for runs in results[scene.name].values())] for scene in chosen]

    heads = ["scene", *next(iter(results.values()))]
    lasting = [scene for scene in scenes if len(scene.rounds) > 1]
    racked = [scene for scene in scenes if scene.racks is not None]
    for title, found in (
        ("Ratio to the lower bound, mean (worst)", rows(scenes, _ratio)),
        ("Load moved a round", rows(lasting, lambda summary: f"{summary.moved_mean:.2%}")),
        ("Load read from another rack", rows(racked, lambda summary: f"{summary.crossed_mean:.2%}")),
    ):
        if found:
            yield title, heads, found


def render(scenes: Sequence[Scene], results: Results, footer: str) -> str:
    """The page as HTML text."""
    parts = [
        "<h1>How good are the assignments?</h1>",
        '<p class="lead">Every assignor plays every scene by itself: what it gave out in one round, members own in'
        " the next. A good one is even and moves little; each alone is easy.</p>",
    ]
    for title, heads, rows in tables(scenes, results):
        lines = ("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
        parts += [f"<h2>{escape(title)}</h2>", table(heads, lines)]
    long = [scene for scene in scenes if len(scene.rounds) > 3]
    if long:
        figures = [figure for scene in long for figure in _by_round(scene, results[scene.name])]
        parts += ["<h2>Round by round</h2>", _legend(results[long[0].name]), '<div class="panels">', *figures, "</div>"]
    parts += [
        "<h2>What the numbers mean</h2>",
        definitions(MEANINGS),
        "<h2>Who is compared</h2>",
        definitions(RIVALS),
        f"<footer>{escape(footer)}</footer>",
    ]
    return document("loadwise: quality of assignments", parts, style=STYLE)


def _ratio(summary: Summary) -> str:
    return f"{summary.ratio_mean:.3f} ({summary.ratio_worst:.2f})"


def _by_round(scene: Scene, runs: Mapping[str, Sequence[Sequence[Score]]]) -> Iterator[str]:
    """The first seed's run: how far each is above the bound, and what it has moved so far."""
    over = {who: [100 * (score.ratio - 1) for score in run[0]] for who, run in runs.items()}
    moved = {who: list(accumulate(100 * score.moved for score in run[0])) for who, run in runs.items()}
    for up, lines in (("highest load above the bound, %", over), ("load moved so far, % of all load", moved)):
        ends = axes(len(scene.rounds) - 1, max(map(max, lines.values())))
        ours_on_top = sorted(lines, key=lambda who: who == "weighted")
        drawn = [Line(who, who, list(enumerate(lines[who]))) for who in ours_on_top]
        picture = panel(scene.name, up, Axes(ends.x_max, ends.y_max, scene.round_name, up), drawn, ())
        caption = f"<figcaption><b>{escape(scene.name)}</b><span>{escape(scene.about)}</span></figcaption>"
        yield f"<figure>{caption}\n{picture}</figure>"


def _legend(names: Iterable[str]) -> str:
    stroke = '<svg viewBox="0 0 26 10" aria-hidden="true"><polyline class="line {0}" points="0,5 26,5"/></svg>{0}'
    return f'<div class="lines">{"".join(f"<span>{stroke.format(escape(name))}</span>" for name in names)}</div>'
