"""The file map in ``docs/architecture.md`` is complete."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("assignor", "benchmarks", "coordinator", "protocol", "spark_source", "src/loadwise")


def test_every_module_is_on_the_map_and_nothing_else() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    listed = {path for path in re.findall(r"\]\(\.\./([^)]*\.py)\)", text) if path.startswith(FOLDERS)}
    modules = {
        path.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "__init__.py"
    }
    assert modules <= listed, "add these to the file map"
    assert all((ROOT / path).is_file() for path in listed), "take these off the file map"
