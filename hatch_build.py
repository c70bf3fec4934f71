"""Refuse an editable installation of a checkout whose package links came out as text files.

``src/loadwise/{assignor,coordinator,protocol,spark_source}`` are symbolic links to the four top-level folders. Git on
Windows without ``core.symlinks``, and some archive tools, write them as small text files. A wheel takes the folders
themselves, but an editable installation imports through the links.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PARTS = ("assignor", "coordinator", "protocol", "spark_source")


class LinkCheck(BuildHookInterface):
    """Check that every part of the package can be imported through its link."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            return
        package = Path(self.root) / "src" / "loadwise"
        broken = [part for part in PARTS if not (package / part / "__init__.py").is_file()]
        if broken:
            raise RuntimeError(
                f"src/loadwise/{broken[0]} is not a link to ../../{broken[0]}. This checkout lost its symbolic links;"
                " clone again with `git clone -c core.symlinks=true` (on Windows: with developer mode on)."
            )
