"""The README's programs, and what each prints by its own account."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def programs() -> dict[str, tuple[str, str]]:
    """Each door's heading to its program and the output that stands below it."""
    sections = re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", README.read_text(), re.MULTILINE | re.DOTALL)
    return {
        heading: found.groups()  # type: ignore[misc]
        for heading, text in sections
        if (found := re.search(r"^```python\n(.*?)^```\n+```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    }
