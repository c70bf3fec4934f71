"""Refuse to build from a checkout whose package links came out as text files.

``src/loadwise/{assignor,coordinator,protocol,spark_source}`` are symbolic links to the four top-level folders. Git on
Windows without ``core.symlinks``, and some archive tools, write them as small text files; a wheel built from such a
tree would install four broken modules.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PARTS = ("assignor", "coordinator", "protocol", "spark_source")


class LinkCheck(BuildHookInterface):
    """Check that every part of the package is a folder with an ``__init__.py``."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        package = Path(self.root) / "src" / "loadwise"
        broken = [part for part in PARTS if not (package / part / "__init__.py").is_file()]
        if broken:
            raise RuntimeError(
                f"src/loadwise/{broken[0]} is not a link to ../../{broken[0]}. This checkout lost its symbolic links;"
                " clone again with `git clone -c core.symlinks=true` (on Windows: with developer mode on)."
            )
