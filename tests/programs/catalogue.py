"""The programs that `run.py` runs: entries of the files in ``catalogue/``, read and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command line of a program's run."""

    run: str
    """Run by ``bash -e -o pipefail`` in a folder of its own, with BROKER, NAME, PORT and SOURCES in its environment."""
    sees: tuple[str, ...] = ()
    """Regular expressions that must all be found in what it prints."""
    background: bool = False
    """Whether it goes on beside the steps behind it; those begin when it has printed what it must."""
    again: bool = False
    """Whether it is run again until it succeeds, for what takes a while to come true."""
    within_s: int = 90
    """How long it may take, with all its tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program of somebody else's, and what shows that it works."""

    name: str
    does: str
    """What it is tried with, in a few words."""
    install: Mapping[str, Any]
    """How it is installed: the name of an installer of `installers.py`, and what that one takes."""
    steps: tuple[Step, ...]
    kind: str = field(default="", compare=False)
    """The title of its file."""


def programs() -> Iterator[Program]:
    """All of them, in the order of the table. Raises TypeError for a field that there is not."""
    for path in sorted((HERE / "catalogue").glob("*.toml")):
        file = tomllib.loads(path.read_text())
        for entry in file["program"]:
            steps = tuple(Step(**{**step, "sees": tuple(step.get("sees", ()))}) for step in entry.pop("steps"))
            yield Program(**{"install": file.get("install", {}), **entry}, steps=steps, kind=file["title"])
