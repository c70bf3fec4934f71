"""The name that a misspelled one was probably meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the nearest of the names, or an empty text if none is near."""
    near = get_close_matches(name, list(names), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
