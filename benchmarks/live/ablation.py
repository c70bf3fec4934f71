"""`python -m benchmarks.live.ablation`: what each mechanism of `assignor/live/` is worth: scenes with and without it.

A mechanism is left out by numbers of `Tuning` with which it does nothing. Scenes in which something happens every few
hours are played four times as fast. The shift of `benchmarks.live.shapes` is played by programs that look faster than
they are.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

from benchmarks.live.figures import Figures, figures
from benchmarks.live.play import play
from benchmarks.live.policies import AllKnowing, Live
from benchmarks.live.scenes import SCENES
from benchmarks.live.shapes import QUICK, shifted
from benchmarks.live.world import Scene
from loadwise.assignor.live.tuning import Tuning

_OFTEN = {"bursts", "day", "noisy_neighbours", "on_and_off", "time_zones", "drifting_costs", "steady", "churn"}
"""Scenes in which enough happens in an hour; with `deploys` and the like, which would come too fast."""
_HURRY = 4
_LOOKS_FASTER = ("bucket", "batch", "tasks", "pool")
_NEVER = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """Something without which the group would be worse off."""

    name: str
    own: str
    """The scene for which it was made: a function of `scenes`, or ``shapes``."""
    without: Mapping[str, Any]
    """Numbers of `Tuning` by stage, with which it does nothing; or ``learns`` False: nobody listens to members."""

    def live(self) -> Live:
        """Answer loadwise without it."""
        return Live(tuning=self.tuning(), learns=self.without.get("learns", True))

    def tuning(self) -> Tuning:
        """Answer the numbers without it."""
        changes: dict[str, Any] = {}
        for path, value in self.without.items():
            stage, _, name = path.rpartition(".")
            if stage:
                changes[stage] = replace(changes.get(stage, getattr(Tuning(), stage)), **{name: value})
            elif name != "learns":
                changes[name] = value
        return replace(Tuning(), **changes)


def _of(name: str, own: str, **without: Any) -> Mechanism:
    return Mechanism(name=name, own=own, without={path.replace("__", "."): each for path, each in without.items()})


MECHANISMS: Sequence[Mechanism] = (
    _of("a rate is the mean of 300 records", "costly_topic", arrivals__enough=0.0),
    _of("a rate that doubles is seen twice", "bad_readings", arrivals__risen=math.inf),
    _of("what members measure of themselves", "slow_members", learns=False),
    _of("what their notes show counts more", "shapes", seen__shortest_ms=_NEVER),
    _of("a backlog grows in two intervals in a row", "shapes", seen__intervals=1),
    _of("learned costs of topics", "costly_topic", cost__apart=math.inf),
    _of("what members measure is off by an eighth", "slow_members", capacity__measured_within=0.0),
    _of("twins", "ageing_member", capacity__twins=0.0),
    _of("the way back to the median", "silent_slowness", capacity__half_life_ms=_NEVER),
    _of("who keeps up is used to a part", "silent_slowness", capacity__used=1.0),
    _of("a partition that stands tells nothing", "stuck_records", activity__still_s=_NEVER),
    _of("an imbalance must have cost something", "bursts", restraint__patience_s=0.0),
    _of("the next reading comes soon", "shapes", soon_s=_NEVER),
)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.ablation", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0, help="the length of each scene")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--mechanisms", nargs="*", choices=[each.name for each in MECHANISMS], help="all")
    parser.add_argument("--processes", type=int)
    args = parser.parse_args()
    chosen = [each for each in MECHANISMS if args.mechanisms is None or each.name in args.mechanisms]
    makes = {make: [each for each in chosen if each.own == make.__name__] for make in SCENES}
    work = [(make, seed, args.hours, of) for make, of in makes.items() if of for seed in range(args.seeds)]
    with ProcessPoolExecutor(args.processes) as pool:
        played: dict[str, dict[str, list[Figures]]] = {}
        for name, of_scene in pool.map(_of_scene, work):
            for mechanism, it in of_scene.items():
                played.setdefault(mechanism, {}).setdefault(name, []).append(it)
        shapes = pool.map(_of_shapes, [(each, args.seeds) for each in chosen if each.own == "shapes"])
        for line in table(chosen, played, dict(shapes)):
            print(line, flush=True)


def _of_scene(
    work: tuple[Callable[[int], Scene], int, float, Sequence[Mechanism]],
) -> tuple[str, dict[str, Figures]]:
    make, seed, hours, mechanisms = work
    scene = make(seed)
    scene = (scene if make.__name__ in _OFTEN else scene.hurried(_HURRY)).shortened(round(hours * 3600))
    best = play(scene, AllKnowing(), seed)
    tried = {"": Live()} | {each.name: each.live() for each in mechanisms}
    return make.__name__, {name: figures(scene, play(scene, live, seed), best) for name, live in tried.items()}


def _of_shapes(work: tuple[Mechanism, int]) -> tuple[str, tuple[float, float]]:
    mechanism, seeds = work
    return mechanism.name, (_calm_s(Tuning(), seeds), _calm_s(mechanism.tuning(), seeds))


def _calm_s(tuning: Tuning, seeds: int) -> float:
    played = [shifted(name, QUICK, seed, tuning=tuning) for name in _LOOKS_FASTER for seed in range(seeds)]
    return median(outcome.calm_s(at_s) for outcome, at_s in played)


def table(
    mechanisms: Sequence[Mechanism],
    played: Mapping[str, Mapping[str, Sequence[Figures]]],
    shapes: Mapping[str, tuple[float, float]],
) -> Iterator[str]:
    """A row for each mechanism: its own scene with it, and without; as Markdown."""
    yield "| mechanism | its scene | utilisation | overload | back s |"
    yield "|---|---|---:|---:|---:|"
    for mechanism in mechanisms:
        own = [played.get(each, {}).get(mechanism.own, ()) for each in ("", mechanism.name)]
        cells = ["", "", " → ".join(f"{each:.0f}" for each in shapes.get(mechanism.name, ()))]
        if all(own):
            cells = [_ratio(own), _overload(own), " → ".join(f"{max(it.recovered_s for it in of):.0f}" for of in own)]
        yield f"| {mechanism.name} | {mechanism.own.replace('_', ' ')} | {' | '.join(cells)} |"


def _ratio(both: Sequence[Sequence[Figures]]) -> str:
    return " → ".join(f"{fmean(it.ratio for it in of):.3f}" for of in both)


def _overload(both: Sequence[Sequence[Figures]]) -> str:
    return " → ".join(f"{fmean(it.avoidable for it in of):.2%}" for of in both)


if __name__ == "__main__":
    main()
