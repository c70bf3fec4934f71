"""The live page, which shows the groups of ``GET /groups`` and refreshes every second.

It loads nothing else. Text from clients is inserted as text, never as HTML, and the page may run no script but its own.
"""

from __future__ import annotations

import functools
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from loadwise.report.page import STYLE


@functools.cache
def html() -> str:
    """Return the page; the first call builds it."""
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>loadwise coordinator</title>
<style>{_style()}</style>
<main>
<header><h1>Groups</h1><span id="status" role="status">connecting</span><span id="broker"></span></header>
<div id="groups"></div>
<noscript>This page needs JavaScript; the same is at <a href="/groups">/groups</a> as JSON.</noscript>
</main>
<script>{_script()}</script>
</html>
"""


@functools.cache
def security_policy() -> str:
    """Return its Content-Security-Policy: its own script, style and server only."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(_script())}",
            f"style-src {_hash(_style())}",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


@functools.cache
def _script() -> str:
    return Path(__file__).with_name("view.js").read_text(encoding="utf-8")


@functools.cache
def _style() -> str:
    return STYLE + Path(__file__).with_name("view.css").read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
