"""What an unfinished run of all programs has shown by now: a file in the cache folder, where the next call goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Progress:
    """The rows of a table that is being made."""

    begun: str
    """The day on which the run began, as 2026-11-22."""
    rows: dict[str, list[str]] = field(default_factory=dict)
    """Each program's cells, by its name."""
    seconds: float = 0.0
    """How long the programs took, without what installed them."""

    @classmethod
    def of(cls, path: Path, today: str) -> Progress:
        """What an unfinished run has left in a file; a new run where there is none."""
        return cls(**json.loads(path.read_text())) if path.exists() else cls(today)

    def add(self, path: Path, name: str, cells: Sequence[str], seconds: float) -> None:
        """Keep what a program showed, in the file too."""
        self.rows[name] = list(cells)
        self.seconds += seconds
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1))
