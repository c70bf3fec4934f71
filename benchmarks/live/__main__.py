"""`python -m benchmarks.live`: play the scenes under every assignor, and print a table."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby

from benchmarks.live.figures import Figures, Summary, figures, missed, summary
from benchmarks.live.play import play
from benchmarks.live.policies import AllKnowing, policies
from benchmarks.live.scenes import SCENES
from benchmarks.live.sweep import sweep, table
from benchmarks.live.world import Scene

_BEST, _GREEDY = "all-knowing", "greedy at every reading"
"""The figures of the others are in relation to theirs."""
_OURS = "loadwise"
_Work = tuple[Callable[[int], Scene], int, int, frozenset[str]]
_Played = tuple[str, dict[str, Figures]]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, one after the other")
    parser.add_argument("--hours", type=float, default=24.0, help="the length of each scene")
    parser.add_argument("--scenes", nargs="*", default=[make.__name__ for make in SCENES])
    others = [policy.name for policy in policies() if policy.name != _BEST]
    parser.add_argument(
        "--without", nargs="*", default=[], choices=others, help="assignors to leave out: it takes less"
    )
    parser.add_argument("--processes", type=int, help="how many to use; as many as there are cores")
    parser.add_argument("--sweep", action="store_true", help="change one setting at a time")
    args = parser.parse_args()
    makes = [make for make in SCENES if make.__name__ in args.scenes]
    seeds = range(args.seed, args.seed + args.seeds)
    if args.sweep:
        print("\n".join(table(sweep(makes, seeds, args.hours, args.processes), args.hours)))
        return
    results: dict[str, dict[str, Summary]] = {}
    began = time.monotonic()
    print(
        f"{'scene':14} {'assignor':24} {'utilisation':>11} {'highest':>8} {'overload':>9} {'highest':>8}"
        f" {'for load':>8} {'of greedy':>9} {'back s':>7}"
    )
    with ProcessPoolExecutor(args.processes) as pool:
        without = frozenset(args.without)
        work = [(make, seed, round(args.hours * 3600), without) for make in makes for seed in seeds]
        for scene, played in groupby(pool.map(_play_all, work), key=lambda it: it[0]):
            results[scene] = _of_seeds([of_seed for _, of_seed in played])
            for line in _lines(scene, results[scene]):
                print(line, flush=True)
    steady = {scene.name for make in makes for scene in [make(args.seed)] if len(scene.pieces) == 1}
    for scene, of_scene in results.items():
        for what in missed(of_scene[_OURS], steady=scene in steady) if _OURS in of_scene else ():
            print(f"goal missed in {scene}: {what}")
    print(f"{len(seeds)} seeds, {time.monotonic() - began:.0f} s")


def _of_seeds(played: Sequence[Mapping[str, Figures]]) -> dict[str, Summary]:
    greedy = [it[_GREEDY] for it in played if _GREEDY in it]
    return {name: summary([it[name] for it in played], greedy) for name in played[0]}


def _lines(scene: str, results: Mapping[str, Summary]) -> Iterator[str]:
    for name, it in results.items():
        moved = "" if math.isnan(it.moved_of_greedy) else f"{it.moved_of_greedy:.2%}"
        yield (
            f"{scene:14} {name:24} {it.ratio:11.3f} {it.worst_ratio:8.3f} {it.avoidable:9.2%} {it.worst_avoidable:8.2%}"
            f" {it.for_load:8.1f} {moved:>9} {it.recovered_s:7.0f}"
        )


def _play_all(work: _Work) -> _Played:
    make, seed, end_s, without = work
    scene = make(seed).shortened(end_s)
    best = play(scene, AllKnowing(), seed)
    return scene.name, {
        policy.name: figures(scene, best if type(policy) is AllKnowing else play(scene, policy, seed), best)
        for policy in policies()
        if policy.name not in without
    }


if __name__ == "__main__":
    main()
