"""`make bench-live LIVE=--sweep`: loadwise under other settings, one changed at a time: a table, and a picture each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.live.figures import Figures, figures
from benchmarks.live.play import Outcome, play
from benchmarks.live.policies import AllKnowing, Live
from benchmarks.live.world import Scene
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.tuning import Tuning

VALUES: Mapping[str, Sequence[float]] = {
    "healthy": (0.5, 0.6, 0.7, 0.8, 0.9),
    "least_gain": (0.02, 0.05, 0.1, 0.2, 0.3),
    "most_per_hour": (2, 4, 6, 12),
    "restraint.patience_s": (0.5, 1, 2, 5, 10),
    "demand.drain_s": (5, 15, 30, 60, 120),
}
"""What is tried of each setting of `LiveSettings`, and of `Tuning` by its stage; the others keep their defaults."""

_PANELS = ("utilisation over the best", "overload that was avoidable, %", "rebalances for the load a day")
_COLOURS = ("#2563c9", "#c2620a", "#17875a", "#8b3fb5", "#b3363e", "#5b6573", "#0e8a94", "#a08511")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 260, 170, 40, 26, 22


@dataclass(frozen=True, slots=True)
class Tried:
    """The mean over the seeds of what came out in one scene with one value of one setting."""

    setting: str
    value: float
    scene: str
    ratio: float
    avoidable: float
    for_load_a_day: float
    recovered_s: float
    """The longest of all seeds."""

    @property
    def panels(self) -> tuple[float, float, float]:
        """What the picture shows, in the order of its panels."""
        return self.ratio, 100 * self.avoidable, self.for_load_a_day


def sweep(
    makes: Sequence[Callable[[int], Scene]], seeds: Sequence[int], hours: float, processes: int | None = None
) -> Iterator[Tried]:
    """Play every scene with every value; the all-knowing one is played once a scene and seed."""
    with ProcessPoolExecutor(processes) as pool:
        for of_scene in pool.map(_of_scene, [(make, tuple(seeds), round(hours * 3600)) for make in makes]):
            yield from of_scene


def _of_scene(work: tuple[Callable[[int], Scene], Sequence[int], int]) -> list[Tried]:
    make, seeds, end_s = work
    scenes = {seed: make(seed).shortened(end_s) for seed in seeds}
    best = {seed: play(scene, AllKnowing(), seed) for seed, scene in scenes.items()}
    default = _mean(scenes, best, Live())
    tried = []
    for setting, values in VALUES.items():
        for value in values:
            name, ratio, avoidable, for_load, recovered = (
                default if value == default_of(setting) else _mean(scenes, best, changed(setting, value))
            )
            tried.append(Tried(setting, value, name, ratio, avoidable, for_load * 86_400 / end_s, recovered))
    return tried


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
    change = {name: int(value) if name == "most_per_hour" else value}
    return Live(settings=replace(LiveSettings(), **change))


def _mean(
    scenes: Mapping[int, Scene], best: Mapping[int, Outcome], live: Live
) -> tuple[str, float, float, float, float]:
    each: list[Figures] = []
    name = ""
    for seed, scene in scenes.items():
        name = scene.name
        each.append(figures(scene, play(scene, live.anew(), seed), best[seed]))
    count = len(each)
    return (
        name,
        sum(it.ratio for it in each) / count,
        sum(it.avoidable for it in each) / count,
        sum(it.for_load for it in each) / count,
        max(it.recovered_s for it in each),
    )


def table(tried: Sequence[Tried]) -> Iterator[str]:
    """One line for each value of each setting: the worst scene and the mean of all."""
    heads = f"{'mean util.':>10} {'worst util.':>22} {'worst overload':>22} {'a day':>7} {'back s':>7}"
    yield f"{'setting':30} {'value':>7} {heads}"
    for setting, values in VALUES.items():
        for value in values:
            of_value = [it for it in tried if (it.setting, it.value) == (setting, value)]
            mean = sum(it.ratio for it in of_value) / len(of_value)
            worst, overload = max(of_value, key=lambda it: it.ratio), max(of_value, key=lambda it: it.avoidable)
            default = " *" if value == default_of(setting) else ""
            yield (
                f"{setting:30} {value:7g} {mean:10.3f} {worst.ratio:7.3f} {worst.scene:>14} {overload.avoidable:7.2%}"
                f" {overload.scene:>14} {sum(it.for_load_a_day for it in of_value):7.0f}"
                f" {max(it.recovered_s for it in of_value):7.0f}{default}"
            )


def pictures(tried: Sequence[Tried], folder: Path) -> list[Path]:
    """Write a picture for each setting: a line for each scene, and the default marked."""
    paths = []
    for setting, values in VALUES.items():
        path = folder / f"live-{setting.rpartition('.')[2].replace('_', '-')}.svg"
        path.write_text(_picture(setting, values, [it for it in tried if it.setting == setting]))
        paths.append(path)
    return paths


def _picture(setting: str, values: Sequence[float], tried: Sequence[Tried]) -> str:
    scenes = list(dict.fromkeys(it.scene for it in tried))
    legend = _TOP + _HEIGHT + 4
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {3 * (_WIDTH + 20)} {legend + 18}" font-size="11"'
        f' font-family="system-ui, sans-serif" role="img" aria-label="{setting}">',
        f'<rect width="{3 * (_WIDTH + 20)}" height="{legend + 18}" fill="#fff"/>',
    ]
    for panel, title in enumerate(_PANELS):
        x0, width, height = panel * (_WIDTH + 20) + _LEFT, _WIDTH - _LEFT, _HEIGHT - _BOTTOM
        low = 1.0 if panel == 0 else 0.0
        top = max(*(it.panels[panel] for it in tried), low + (0.1 if panel < 2 else 1.0))
        step = width / max(len(values) - 1, 1)
        parts.append(f'<text x="{x0}" y="14" font-weight="600">{escape(title)}</text>')
        for level in (low, (low + top) / 2, top):
            y = _TOP + height * (1 - (level - low) / (top - low))
            parts.append(f'<line x1="{x0}" y1="{y:.1f}" x2="{x0 + width}" y2="{y:.1f}" stroke="#dfe3e8"/>')
            parts.append(f'<text x="{x0 - 5}" y="{y + 4:.1f}" text-anchor="end">{level:.3g}</text>')
        for number, value in enumerate(values):
            x, default = x0 + step * number, value == default_of(setting)
            if default:
                parts.append(
                    f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_TOP + height}" stroke="#8a94a3"'
                    ' stroke-dasharray="3 3"/>'
                )
            weight = ' font-weight="600"' if default else ""
            parts.append(f'<text x="{x:.1f}" y="{_TOP + height + 14}" text-anchor="middle"{weight}>{value:g}</text>')
        for index, scene in enumerate(scenes):
            points = " ".join(
                f"{x0 + step * values.index(it.value):.1f},"
                f"{_TOP + height * (1 - (it.panels[panel] - low) / (top - low)):.1f}"
                for it in tried
                if it.scene == scene
            )
            parts.append(f'<polyline points="{points}" fill="none" stroke="{_COLOURS[index % 8]}" stroke-width="1.6"/>')
    for index, scene in enumerate(scenes):
        x = _LEFT + 98 * index
        parts.append(
            f'<text x="{x}" y="{legend + 10}" fill="{_COLOURS[index % 8]}" font-weight="600">{escape(scene)}</text>'
        )
    return "".join([*parts, "</svg>\n"])
