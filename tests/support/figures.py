"""Figures with limits: what a live scene measures, and the table that ``make nightly`` makes of it.

A run keeps a line of JSON for each figure, so that another run can go on where it ended.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Figure(NamedTuple):
    """What was measured, and the largest value that is good."""

    name: str
    """With its unit."""
    value: float
    limit: float = math.inf

    @property
    def ok(self) -> bool:
        return self.value <= self.limit


class Row(NamedTuple):
    """A figure of a scene."""

    scene: str
    figure: Figure


def lines(rows: Iterable[Row]) -> str:
    """A line of JSON for each row."""
    return "".join(json.dumps([row.scene, *row.figure]) + "\n" for row in rows)


def rows(text: str) -> list[Row]:
    """The rows that `lines` made."""
    return [Row(scene, Figure(*figure)) for scene, *figure in map(json.loads, text.splitlines())]


def table(measured: Iterable[Row], before: Mapping[tuple[str, str], str] | None = None) -> str:
    """A Markdown table of the rows, with the values that an earlier table has for the same scenes and figures."""
    cells = [
        (scene, name, f"{value:.4g}", (before or {}).get((scene, name), ""), *_judged(figure))
        for scene, figure in measured
        for name, value, _ in [figure]
    ]
    head = "| scene | figure | value | before | limit | ok |\n|---|---|---:|---:|---:|---|\n"
    return head + "".join(f"| {' | '.join(row)} |\n" for row in cells)


def _judged(figure: Figure) -> tuple[str, str]:
    if figure.limit == math.inf:
        return "", ""
    return f"{figure.limit:g}", "yes" if figure.ok else "**no**"


def values(text: str) -> dict[tuple[str, str], str]:
    """The values of the tables in a text, by scene and figure; the last one of each counts."""
    found = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| [^|]*\| [^|]*\| [^|]*\|$", text, re.MULTILINE)
    return {(scene, name): value for scene, name, value in found if scene != "scene"}
