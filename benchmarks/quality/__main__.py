"""``python -m benchmarks.quality``: how even assignments are and how much they move, as tables and a page.

Everything is drawn from seeds, so the numbers are the same on every machine; only the time that it takes is not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from kafka.partitioner.default import murmur2

import loadwise
from benchmarks.markdown import markdown
from benchmarks.quality.page import render, tables
from benchmarks.quality.play import play
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
            print(f"Without the scene 'flights': {missing}")
    first = [scene for scene in first if scene.name in wanted]
    results = {
        scene.name: {who.name: [play(each, who) for each in variants[scene.name]] for who in assignors()}
        for scene in first
    }
    for title, heads, rows in tables(first, results):
        print(f"{title}:\n\n{markdown(heads, rows)}\n")
    footer = f"loadwise {loadwise.__version__}; seeds 0 to {chosen.seeds - 1}; {' '.join(sys.argv[1:]) or 'defaults'}."
    chosen.out.write_text(render(first, results, footer), encoding="utf-8")
    print(f"The page: {chosen.out.resolve()}")


def _departures() -> Iterator[tuple[int, int]]:
    """The week and the partition of every flight, as Kafka's default partitioner gives it to its carrier."""
    partition = cache(lambda key: (murmur2(key) & 0x7FFFFFFF) % PARTITIONS)
    for record in flights():
        yield (record.timestamp_ms - NEW_YEAR_MS) // WEEK_MS, partition(record.key)


if __name__ == "__main__":
    main()
