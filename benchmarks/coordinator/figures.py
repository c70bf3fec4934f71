"""What was measured of several brokers: a line each as it comes, and a table at the end."""

from __future__ import annotations

from statistics import median

from benchmarks.coordinator.brokers import Served
from benchmarks.markdown import markdown


class Figures:
    """Figures by what was measured and by broker; of several there, the median counts."""

    def __init__(self) -> None:
        self._layouts: dict[str, str] = {}
        self._values: dict[tuple[str, str], list[float]] = {}

    def add(self, served: Served, what: str, layout: str, value: float, *, note: str = "", cpu_s: float = 0.0) -> None:
        """Print and keep a figure. ``layout``: as ``{:.2f} s``; ``cpu_s``: the processor time that the broker took."""
        self._layouts[what] = layout
        self._values.setdefault((what, served.name), []).append(value)
        cpu = f"{cpu_s:8.2f} s CPU" if cpu_s else ""
        print(f"  {served.name:<18} {what:<46} {layout.format(value):>12} {note:>16} {cpu}".rstrip(), flush=True)

    def table(self, title: str) -> str:
        """A row for each thing that was measured, a column for each broker."""
        names = list(dict.fromkeys(name for _, name in self._values))
        rows = []
        for what, layout in self._layouts.items():
            found = [self._values.get((what, name)) for name in names]
            rows.append([what, *("" if values is None else layout.format(median(values)) for values in found)])
        return markdown([title, *names], rows)
