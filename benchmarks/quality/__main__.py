"""``python -m benchmarks.quality``: how even assignments are and how much they move, as a table and a page.

Everything is drawn from seeds, so the numbers are the same on every machine; only the time that it takes is not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import isnan
from pathlib import Path

from kafka.partitioner.default import murmur2
from rich.console import Console
from rich.progress import track
from rich.table import Table

import loadwise
from benchmarks.quality.page import Results, render
from benchmarks.quality.play import Score, Summary, play
from benchmarks.quality.rivals import BrooklinLike, Greedy, LagBased
from benchmarks.quality.scenes import scenes, stream
from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.model import Assignor
from loadwise.demo.errors import MissingPartError
from loadwise.demo.flights import flights

PARTITIONS = 36
WEEK_MS = 7 * 24 * 3600 * 1000
NEW_YEAR_MS = 1_356_998_400_000
"""2013-01-01 00:00 UTC."""


def assignors() -> list[Assignor]:
    """All assignors."""
    ours = [algorithm(name) for name in ("range", "roundrobin", "sticky")]
    return [*ours, LagBased(), Greedy(), BrooklinLike(), algorithm("weighted")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and write its page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("benchmark-quality.html"), help="the page; default: %(default)s"
    )
    parser.add_argument(
        "--seeds", type=int, default=5, help="how often each made-up scene is drawn; default: %(default)s"
    )
    parser.add_argument("--scene", action="append", help="only this scene; may be given again")
    chosen = parser.parse_args(arguments)
    if chosen.seeds < 1:
        parser.error(f"--seeds is {chosen.seeds}; at least one is needed")
    console = Console()
    if not console.is_terminal:
        console = Console(width=130)  # a log has room for the whole table
    drawn = [scenes(seed) for seed in range(chosen.seeds)]
    first = list(drawn[0])
    variants = {scene.name: [draw[index] for draw in drawn] for index, scene in enumerate(first)}
    wanted = [*variants, "flights"] if chosen.scene is None else chosen.scene
    for name in wanted:
        if name not in variants and name != "flights":
            parser.error(f"no scene is called {name!r}; there are {', '.join([*variants, 'flights'])}")
    if "flights" in wanted:
        try:
            first.append(stream(_departures(), PARTITIONS))
            variants["flights"] = [first[-1]]
        except MissingPartError as missing:
            console.print(f"Without the scene 'flights': {missing}", style="yellow")
    first = [scene for scene in first if scene.name in wanted]
    results: dict[str, dict[str, list[list[Score]]]] = {}
    for scene in track(first, "Playing scenes", console=console, transient=True):
        results[scene.name] = {who.name: [play(each, who) for each in variants[scene.name]] for who in assignors()}
    console.print(_table("Ratio to the lower bound, mean (worst)", results, _ratio))
    console.print(_table("Load moved a round", results, _moved))
    footer = f"loadwise {loadwise.__version__}; seeds 0 to {chosen.seeds - 1}; {' '.join(sys.argv[1:]) or 'defaults'}."
    chosen.out.write_text(render(first, results, footer), encoding="utf-8")
    console.print(f"The page: {chosen.out.resolve()}")


def _departures() -> Iterator[tuple[int, int]]:
    """The week and the partition of every flight, as Kafka's default partitioner gives it to its carrier."""
    partition = cache(lambda key: (murmur2(key) & 0x7FFFFFFF) % PARTITIONS)
    for record in flights():
        yield (record.timestamp_ms - NEW_YEAR_MS) // WEEK_MS, partition(record.key)


def _table(title: str, results: Results, cell: Callable[[Summary], str]) -> Table:
    table = Table(title=title)
    table.add_column("scene", no_wrap=True)
    for who in next(iter(results.values())):
        table.add_column(who, justify="right")
    for scene, by_assignor in results.items():
        cells = [cell(Summary.of(runs)) for runs in by_assignor.values()]
        if any(cells):
            table.add_row(scene, *cells)
    return table


def _ratio(summary: Summary) -> str:
    return f"{summary.ratio_mean:.3f} ({summary.ratio_worst:.2f})"


def _moved(summary: Summary) -> str:
    return "" if isnan(summary.moved_mean) else f"{summary.moved_mean:.2%}"


if __name__ == "__main__":
    main()
