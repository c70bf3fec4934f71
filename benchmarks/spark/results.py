"""The results of the benchmark: medians, and tables in Markdown. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.markdown import markdown
from benchmarks.spark.readers import OURS, READY, THEIRS


@dataclass(frozen=True, slots=True)
class Measured:
    """One query, or one micro-batch."""

    wall_s: float
    cpu_s: float
    """Of the JVM and all Python processes, not of the broker."""
    longest_over_mean: float | None = None
    """The time of the longest task over the mean; None if it was not measured."""
    memory_mb: float | None = None
    """The most memory of a task's Python worker above one that has read nothing; None without a Python worker."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What was to be read, and with how many task slots."""

    name: str
    slots: int
    micro: bool = False
    """Whether each measurement is of a micro-batch, which is shown in milliseconds."""
    delay_ms: float = 0
    """What is added to each round trip to the broker."""

    def __str__(self) -> str:
        far = f", {self.delay_ms:g} ms away" if self.delay_ms else ""
        return f"{self.name}, {self.slots} slots{far}"


Results = Mapping[Scenario, Mapping[str, Measured]]
"""The median of each reader in each scenario."""


def medians(rows: Sequence[Measured]) -> Measured:
    """The median of each figure by itself. Raises `StatisticsError` without rows."""
    tasks = [row.longest_over_mean for row in rows if row.longest_over_mean is not None]
    memory = [row.memory_mb for row in rows if row.memory_mb is not None]
    return Measured(
        median(row.wall_s for row in rows),
        median(row.cpu_s for row in rows),
        median(tasks) if tasks else None,
        median(memory) if memory else None,
    )


def table(scenario: Scenario, readers: Mapping[str, Measured]) -> str:
    """A line for each reader; the last column is the wall time of our defaults by its own."""
    unit = "ms" if scenario.micro else "s"
    heads = [str(scenario), f"wall {unit}", f"CPU {unit}", "longest/mean task", "memory MB", f"{OURS} ÷ it"]
    rows = [
        [
            name,
            amount(row.wall_s, scenario),
            amount(row.cpu_s, scenario),
            "" if row.longest_over_mean is None else f"{row.longest_over_mean:.2f}",
            "" if row.memory_mb is None else f"{row.memory_mb:.0f}",
            f"{readers[OURS].wall_s / row.wall_s:.2f}",
        ]
        for name, row in readers.items()
    ]
    return markdown(heads, rows)


def all_columns_table(results: Results) -> str:
    """Wall and CPU seconds of batches with all columns, as ``docs/benchmarks.md`` has them; empty without any."""
    names = (OURS, READY, THEIRS, f"{THEIRS}, tuned")
    rows = []
    for scenario, readers in results.items():
        kind, _, work = scenario.name.partition(", ")
        if work == "all columns" and not scenario.delay_ms:
            cells = [
                f"{readers[name].wall_s:.2f} / {readers[name].cpu_s:.2f}" if name in readers else "" for name in names
            ]
            rows.append([f"{scenario.slots} slots, {kind}", *cells])
    return markdown(["", *names], rows) if rows else ""


def amount(seconds: float, scenario: Scenario) -> str:
    """A time as in the scenario's table, without its unit."""
    return f"{1000 * seconds:.0f}" if scenario.micro else f"{seconds:.2f}"
