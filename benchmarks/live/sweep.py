"""`make bench-live LIVE=--sweep`: loadwise under other settings, one changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from statistics import fmean
from typing import Any

from benchmarks.live.figures import Figures, figures
from benchmarks.live.play import play
from benchmarks.live.policies import AllKnowing, Live
from benchmarks.live.world import Scene
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import Tuning

VALUES: Mapping[str, Sequence[float]] = {
    "healthy": (0.5, 0.6, 0.7, 0.8, 0.9),
    "least_gain": (0.02, 0.05, 0.1, 0.2, 0.3),
    "standstill": (0.005, 0.01, 0.025, 0.05),
    "restraint.patience_s": (0.5, 1, 2, 5, 10),
    "demand.drain_s": (5, 15, 30, 60, 120),
}
"""What is tried of each setting of `LiveSettings`, and of `Tuning` by its stage; the others keep their defaults."""


Played = Mapping[tuple[str, float], Sequence[Figures]]
"""What came out in one scene with each value of each setting, a seed each."""


def sweep(
    makes: Sequence[Callable[[int], Scene]], seeds: Sequence[int], hours: float, processes: int | None = None
) -> dict[str, Played]:
    """Play every scene with every value; the all-knowing one is played once a scene and seed."""
    with ProcessPoolExecutor(processes) as pool:
        return dict(pool.map(_of_scene, [(make, tuple(seeds), round(hours * 3600)) for make in makes]))


def _of_scene(work: tuple[Callable[[int], Scene], Sequence[int], int]) -> tuple[str, Played]:
    make, seeds, end_s = work
    scenes = {seed: make(seed).shortened(end_s) for seed in seeds}
    best = {seed: play(scene, AllKnowing(), seed) for seed, scene in scenes.items()}

    def played(live: Live) -> list[Figures]:
        return [figures(scene, play(scene, live.anew(), seed), best[seed]) for seed, scene in scenes.items()]

    default = played(Live())
    return scenes[seeds[0]].name, {
        (setting, value): default if value == default_of(setting) else played(changed(setting, value))
        for setting, values in VALUES.items()
        for value in values
    }


def default_of(setting: str) -> float:
    """What a setting is by default."""
    stage, _, name = setting.rpartition(".")
    value: float = getattr(getattr(Tuning(), stage) if stage else LiveSettings(), name)
    return value


def changed(setting: str, value: float) -> Live:
    """Answer loadwise with one setting changed."""
    stage, _, name = setting.rpartition(".")
    if stage:
        change: dict[str, Any] = {stage: replace(getattr(Tuning(), stage), **{name: value})}
        return Live(tuning=replace(Tuning(), **change))
    of_settings: dict[str, Any] = {name: value}
    return Live(settings=replace(LiveSettings(), **of_settings))


def table(played: Mapping[str, Played], hours: float) -> Iterator[str]:
    """One line for each value of each setting: the worst scene and the mean of all."""
    heads = f"{'mean util.':>10} {'worst util.':>22} {'worst overload':>22} {'a day':>7} {'back s':>7}"
    yield f"{'setting':30} {'value':>7} {heads}"
    for setting, values in VALUES.items():
        for value in values:
            of_value = {scene: each[setting, value] for scene, each in played.items()}
            ratio = {scene: fmean(it.ratio for it in each) for scene, each in of_value.items()}
            over = {scene: fmean(it.avoidable for it in each) for scene, each in of_value.items()}
            worst, most = max(ratio, key=ratio.__getitem__), max(over, key=over.__getitem__)
            a_day = sum(fmean(it.for_load for it in each) for each in of_value.values()) * 24 / hours
            back_s = max(it.recovered_s for each in of_value.values() for it in each)
            default = " *" if value == default_of(setting) else ""
            yield (
                f"{setting:30} {value:7g} {fmean(ratio.values()):10.3f} {ratio[worst]:7.3f} {worst:>14}"
                f" {over[most]:7.2%} {most:>14} {a_day:7.0f} {back_s:7.0f}{default}"
            )
