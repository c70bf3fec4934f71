"""`python -m benchmarks.live`: play the scenes under every assignor, print a table, write a page."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path

from benchmarks.live.figures import Figures, Summary, figures, missed, summary
from benchmarks.live.further_scenes import FURTHER
from benchmarks.live.page import page
from benchmarks.live.planned import Planned, can_plan
from benchmarks.live.play import play
from benchmarks.live.policies import AllKnowing, Policy, policies
from benchmarks.live.scenes import SCENES
from benchmarks.live.sweep import pictures, sweep, table
from benchmarks.live.world import Scene

_SCENES = (*SCENES, *FURTHER)
_BEST, _GREEDY = "all-knowing", "greedy at every reading"
"""The figures of the others are in relation to theirs."""
_OURS = "loadwise"
_SHOWN = ("round robin", _OURS, _BEST)
_Work = tuple[Callable[[int], Scene], int, int, frozenset[str]]
_Played = tuple[str, dict[str, Figures], dict[str, list[float]]]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, one after the other")
    parser.add_argument("--hours", type=float, default=24.0, help="the length of each scene")
    parser.add_argument("--scenes", nargs="*", default=[make.__name__ for make in _SCENES])
    others = [policy.name for policy in _all() if policy.name != _BEST]
    parser.add_argument(
        "--without", nargs="*", default=[], choices=others, help="assignors to leave out: it takes less"
    )
    parser.add_argument("--processes", type=int, help="how many to use; as many as there are cores")
    parser.add_argument("--sweep", action="store_true", help="try other settings, and write live-*.svg beside the page")
    parser.add_argument("--html", type=Path, default=Path("benchmark-live.html"))
    args = parser.parse_args()
    makes = [make for make in _SCENES if make.__name__ in args.scenes]
    seeds = range(args.seed, args.seed + args.seeds)
    if args.sweep:
        tried = list(sweep(makes, seeds, args.hours, args.processes))
        print("\n".join(table(tried)))
        print("pictures:", *pictures(tried, args.html.parent))
        return
    results: dict[str, dict[str, Summary]] = {}
    courses: dict[str, Mapping[str, Sequence[float]]] = {}
    began = time.monotonic()
    print(
        f"{'scene':14} {'assignor':24} {'utilisation':>11} {'highest':>8} {'overload':>9} {'highest':>8}"
        f" {'for load':>8} {'of greedy':>9} {'back s':>7}"
    )
    with ProcessPoolExecutor(args.processes) as pool:
        without = frozenset(args.without)
        work = [(make, seed, round(args.hours * 3600), without) for make in makes for seed in seeds]
        for scene, played in groupby(pool.map(_play_all, work), key=lambda it: it[0]):
            each = list(played)
            results[scene], courses[scene] = _of_seeds(each), each[0][2]
            for line in _lines(scene, results[scene]):
                print(line, flush=True)
    steady = {scene.name for make in makes for scene in [make(args.seed)] if len(scene.pieces) == 1}
    for scene, of_scene in results.items():
        for what in missed(of_scene[_OURS], steady=scene in steady) if _OURS in of_scene else ():
            print(f"goal missed in {scene}: {what}")
    args.html.write_text(page(results, courses))
    print(f"{len(seeds)} seeds, {time.monotonic() - began:.0f} s; pictures in {args.html}")


def _of_seeds(played: Sequence[_Played]) -> dict[str, Summary]:
    return {
        name: summary([it[name] for _, it, _ in played], [it[_GREEDY] for _, it, _ in played if _GREEDY in it])
        for name in played[0][1]
    }


def _lines(scene: str, results: Mapping[str, Summary]) -> Iterator[str]:
    for name, it in results.items():
        moved = "" if math.isnan(it.moved_of_greedy) else f"{it.moved_of_greedy:.2%}"
        yield (
            f"{scene:14} {name:24} {it.ratio:11.3f} {it.worst_ratio:8.3f} {it.avoidable:9.2%} {it.worst_avoidable:8.2%}"
            f" {it.for_load:8.1f} {moved:>9} {it.recovered_s:7.0f}"
        )


def _all() -> list[Policy]:
    return [*policies(), Planned()]


def _play_all(work: _Work) -> _Played:
    make, seed, end_s, without = work
    scene = make(seed).shortened(end_s)
    best = play(scene, AllKnowing(), seed)
    results: dict[str, Figures] = {}
    lines: dict[str, list[float]] = {}
    for policy in _all():
        if policy.name in without or (isinstance(policy, Planned) and not can_plan(scene)):
            continue
        outcome = best if type(policy) is AllKnowing else play(scene, policy, seed)
        results[policy.name] = figures(scene, outcome, best)
        if policy.name in _SHOWN:
            lines[policy.name] = outcome.worst
    return scene.name, results, lines


if __name__ == "__main__":
    main()
