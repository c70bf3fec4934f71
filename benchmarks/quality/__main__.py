"""``python -m benchmarks.quality``: how even assignments are and how much they move, as tables.

Everything is drawn from seeds, so the numbers are the same on every machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import cache

from kafka.partitioner.default import murmur2

from benchmarks.markdown import markdown
from benchmarks.quality.play import Summary, play
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
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument(
        "--seeds", type=int, default=5, help="how often each made-up scene is drawn; default: %(default)s"
    )
    parser.add_argument("--scene", action="append", help="only this scene; may be given again")
    chosen = parser.parse_args(arguments)
    if chosen.seeds < 1:
        parser.error(f"--seeds is {chosen.seeds}; at least one is needed")
    drawn = zip(*map(scenes, range(chosen.seeds)), strict=True)
    variants = {of_scene[0].name: list(of_scene) for of_scene in drawn}
    wanted = chosen.scene or [*variants, "flights"]
    for name in wanted:
        if name not in {*variants, "flights"}:
            parser.error(f"no scene is called {name!r}; choose from {', '.join([*variants, 'flights'])}")
    if "flights" in wanted:
        try:
            variants["flights"] = [stream(_departures(), PARTITIONS)]
        except MissingPartError as missing:
            print(f"Without the scene 'flights': {missing}")
    results = {
        name: [Summary.of([play(scene, who) for scene in of_name]) for who in assignors()]
        for name, of_name in variants.items()
        if name in wanted
    }
    heads = ["scene", *(who.name for who in assignors())]
    ratios = [[name, *(f"{it.ratio_mean:.3f} ({it.ratio_worst:.2f})" for it in row)] for name, row in results.items()]
    print(f"Ratio to the lower bound, mean (worst):\n\n{markdown(heads, ratios)}\n")
    moved = [
        [name, *(f"{it.moved_mean:.2%}" for it in row)]
        for name, row in results.items()
        if len(variants[name][0].rounds) > 1
    ]
    if moved:
        print(f"Load moved a round:\n\n{markdown(heads, moved)}")


def _departures() -> Iterator[tuple[int, int]]:
    """The week and the partition of every flight, as Kafka's default partitioner gives it to its carrier."""
    partition = cache(lambda key: (murmur2(key) & 0x7FFFFFFF) % PARTITIONS)
    for record in flights():
        yield (record.timestamp_ms - NEW_YEAR_MS) // WEEK_MS, partition(record.key)


if __name__ == "__main__":
    main()
