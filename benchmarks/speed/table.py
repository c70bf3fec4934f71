"""The measurements as a table, as ``docs/benchmarks.md`` has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.speed.cases import Size
from benchmarks.speed.measure import JAVA, MEMORY, OURS, SERVER, Found


def table(found: Mapping[Size, Mapping[str, Found]]) -> tuple[list[str], list[Sequence[str]]]:
    """Heads and rows of our time, its ratios to Java's and our memory, in every size."""
    heads, rows = ["strategy, phase"], dict[str, list[str]]()
    for size, cases in found.items():
        heads += [f"{size.name}, ms", "ratio", "wire", "server", "MiB"]
        for case, seconds in cases.items():
            ours = seconds.get((OURS, "names"))
            ratios = [_ratio(seconds, *each) for each in ((JAVA, "names"), (JAVA, "wire"), (SERVER, "names"))]
            cells = ["" if ours is None else _ms(ours), *ratios, f"{seconds[OURS, MEMORY]:,.0f}"]
            rows.setdefault(case, []).extend(cells)
    return heads, [[case, *cells] for case, cells in rows.items()]


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g}" if seconds < 1 else f"{seconds * 1000:,.0f}"


def _ratio(seconds: Found, other: str, measure: str) -> str:
    theirs = seconds.get((other, measure))
    return "" if theirs is None else f"{seconds[OURS, measure] / theirs:.2f}"
