"""Figures with limits: what a live scene measures, and the table that ``make nightly`` makes of it.

A run keeps a line of JSON for each figure, so that another run can go on where it ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple


class Figure(NamedTuple):
    """What was measured, and the largest value that is good."""

    name: str
    """With its unit."""
    value: float
    limit: float

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


def table(measured: Iterable[Row]) -> str:
    """A Markdown table of the rows."""
    head = "| scene | figure | value | limit | ok |\n|---|---|---:|---:|---|\n"
    return head + "".join(
        f"| {scene} | {figure.name} | {figure.value:.4g} | {figure.limit:g} | {'yes' if figure.ok else '**no**'} |\n"
        for scene, figure in measured
    )
