"""The results as one self-contained page: tables, and a picture of every scene."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import accumulate

from benchmarks.quality import charts
from benchmarks.quality.play import Score, Summary
from benchmarks.quality.scenes import Scene
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

Results = Mapping[str, Mapping[str, Sequence[Sequence[Score]]]]
"""Scene to assignor to its runs, a run a seed, a score a round."""


def render(scenes: Sequence[Scene], results: Results, footer: str) -> str:
    """The page as HTML text."""
    assignors = list(next(iter(results.values())))
    summaries = {
        name: {who: Summary.of(runs) for who, runs in by_assignor.items()} for name, by_assignor in results.items()
    }
    lasting = [scene for scene in scenes if len(scene.rounds) > 1]
    racked = [scene for scene in scenes if scene.racks is not None]
    long = [scene for scene in scenes if len(scene.rounds) > 3]
    by_round = [figure for scene in long for figure in _by_round(scene, results[scene.name])]
    parts = [
        "<h1>How good are the assignments?</h1>",
        '<p class="lead">Every assignor plays every scene by itself: what it gave out in one round, members own in'
        " the next. A good one is even and moves little; each alone is easy.</p>",
        *_table("Ratio to the lower bound: mean (worst)", scenes, assignors, lambda s, who: _ratio(summaries[s][who])),
        *_table("Load moved a round", lasting, assignors, lambda s, who: f"{summaries[s][who].moved_mean:.2%}"),
        *_table(
            "Load read from another rack", racked, assignors, lambda s, who: f"{summaries[s][who].crossed_mean:.2%}"
        ),
        *_panels("How even", [_figure(scene, _evenness(scene.name, summaries[scene.name])) for scene in scenes]),
        *_panels(
            "How much is moved", [_figure(scene, _movement(scene.name, summaries[scene.name])) for scene in lasting]
        ),
        *_panels("Round by round", by_round, charts.legend(assignors)),
        "<h2>What the numbers mean</h2>",
        definitions(MEANINGS),
        "<h2>Who is compared</h2>",
        definitions(RIVALS),
        f"<footer>{escape(footer)}</footer>",
    ]
    return document("loadwise: quality of assignments", parts, style=charts.STYLE)


def _table(
    title: str, scenes: Sequence[Scene], assignors: Sequence[str], cell: Callable[[str, str], str]
) -> Iterator[str]:
    if scenes:
        yield f"<h2>{escape(title)}</h2>"
        rows = [(scene.name, "".join(f"<td>{cell(scene.name, who)}</td>" for who in assignors)) for scene in scenes]
        yield table(["scene", *assignors], [f"<tr><td>{escape(name)}</td>{cells}</tr>" for name, cells in rows])


def _panels(title: str, figures: Sequence[str], legend: str = "") -> Iterator[str]:
    if figures:
        yield f'<h2>{escape(title)}</h2>{legend}<div class="panels">'
        yield from figures
        yield "</div>"


def _evenness(title: str, summaries: Mapping[str, Summary]) -> str:
    return charts.evenness(title, {who: (each.ratio_mean, each.ratio_worst) for who, each in summaries.items()})


def _movement(title: str, summaries: Mapping[str, Summary]) -> str:
    return charts.movement(title, {who: each.moved_mean for who, each in summaries.items()})


def _ratio(summary: Summary) -> str:
    return f"{summary.ratio_mean:.3f} <small>({summary.ratio_worst:.2f})</small>"


def _figure(scene: Scene, picture: str) -> str:
    return (
        f"<figure><figcaption><b>{escape(scene.name)}</b><span>{escape(scene.about)}</span></figcaption>"
        f"\n{picture}</figure>"
    )


def _by_round(scene: Scene, runs: Mapping[str, Sequence[Sequence[Score]]]) -> list[str]:
    """The first seed's run, round by round."""
    ratios = {who: [score.ratio for score in run[0]] for who, run in runs.items()}
    moved = {who: list(accumulate(score.moved for score in run[0])) for who, run in runs.items()}
    return [
        _figure(
            scene, charts.over_time(scene.name, scene.round_name, "highest load over the bound", ratios, least=1.0)
        ),
        _figure(
            scene, charts.over_time(scene.name, scene.round_name, "load moved so far, in parts of all load", moved)
        ),
    ]
