"""Links out of ``docs`` lead to the file in the repository; a link to a file that is not there is a warning."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

REPOSITORY = "https://github.com/loadwise/loadwise/blob/main"
_OUTSIDE = re.compile(r"\]\((\.\./[^)#]*|lab/[^)#]*)(#[^)]*)?\)")
log = logging.getLogger(__name__)


def _rewrite(app: Sphinx, name: str, source: list[str]) -> None:
    page = Path(app.srcdir) / name
    root = Path(app.srcdir).parent

    def address(link: re.Match[str]) -> str:
        target = (page.parent / link[1]).resolve()
        if target.is_relative_to(app.srcdir) and "lab" not in target.parts:
            return link[0]
        if not target.exists():
            log.warning("there is no file %s", link[1], location=name)
        return f"]({REPOSITORY}/{target.relative_to(root)}{link[2] or ''})"

    source[0] = _OUTSIDE.sub(address, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", _rewrite)
    return {"parallel_read_safe": True}
