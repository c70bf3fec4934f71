"""The name that a misspelled one was probably meant to be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the one of the names that is most like an unknown one, in upper or lower case; None if none is near."""
    spelling = {each.lower(): each for each in names}
    near = get_close_matches(name.lower(), spelling, n=1)
    return spelling[near[0]] if near else None


def did_you_mean(name: str, names: Iterable[str], shown: Callable[[str], str] = str) -> str:
    """Return `` (did you mean 'x'?)`` for the nearest of the names as it is shown, or an empty text if none is near."""
    near = nearest(name, names)
    return "" if near is None else f" (did you mean {shown(near)!r}?)"


def near_or_all(name: str, names: Collection[str]) -> str:
    """Return what `did_you_mean` does, or ``; choose from x, y`` with all names if none is near."""
    return did_you_mean(name, names) or f"; choose from {', '.join(names)}"
