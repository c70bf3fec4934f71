"""`python -m benchmarks.live`: play the scenes under every assignor, print a table, write a page."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.live.figures import Figures, figures
from benchmarks.live.page import page
from benchmarks.live.play import play
from benchmarks.live.policies import AllKnowing, policies
from benchmarks.live.scenes import SCENES
from benchmarks.live.sweep import pictures, sweep, table
from benchmarks.live.world import Scene

_SHOWN = ("round robin", "loadwise", "all-knowing")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=24.0, help="the length of each scene")
    parser.add_argument("--scenes", nargs="*", default=[make.__name__ for make in SCENES])
    parser.add_argument("--seeds", type=int, nargs="*", help="of --sweep: the seeds to take the mean over")
    parser.add_argument("--sweep", action="store_true", help="try other settings, and write live-*.svg beside the page")
    parser.add_argument("--html", type=Path, default=Path("benchmark-live.html"))
    args = parser.parse_args()
    makes = [make for make in SCENES if make.__name__ in args.scenes]
    if args.sweep:
        tried = list(sweep(makes, args.seeds or [args.seed], args.hours))
        print("\n".join(table(tried)))
        print("pictures:", *pictures(tried, args.html.parent))
        return
    results: dict[str, dict[str, Figures]] = {}
    courses: dict[str, dict[str, list[float]]] = {}
    print(
        f"{'scene':14} {'assignor':24} {'utilisation':>11} {'overload':>9} {'for load':>8} {'moved/s':>9} {'back s':>7}"
    )
    began = time.monotonic()
    with ProcessPoolExecutor() as pool:
        work = [(make, args.seed, round(args.hours * 3600)) for make in makes]
        for scene, of_scene, lines in pool.map(_play_all, work):
            results[scene], courses[scene] = of_scene, lines
            for name, it in of_scene.items():
                print(
                    f"{scene:14} {name:24} {it.ratio:11.3f} {it.avoidable:9.2%} {it.for_load:8d} {it.moved_per_s:9,.0f}"
                    f" {it.recovered_s:7.0f}",
                    flush=True,
                )
    args.html.write_text(page(results, courses))
    print(f"{time.monotonic() - began:.0f} s; pictures in {args.html}")


def _play_all(
    work: tuple[Callable[[int], Scene], int, int],
) -> tuple[str, dict[str, Figures], dict[str, list[float]]]:
    make, seed, end_s = work
    scene = make(seed).shortened(end_s)
    best = play(scene, AllKnowing(), seed)
    results: dict[str, Figures] = {}
    lines: dict[str, list[float]] = {}
    for policy in policies():
        outcome = best if isinstance(policy, AllKnowing) else play(scene, policy, seed)
        results[policy.name] = figures(scene, outcome, best)
        if policy.name in _SHOWN:
            lines[policy.name] = outcome.worst
    return scene.name, results, lines


if __name__ == "__main__":
    main()
