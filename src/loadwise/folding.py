"""Decides how a table is laid out on a narrow screen: what does not fit goes below, beside the first column again."""

from __future__ import annotations

from collections.abc import Sequence

GAP = 2
"""Characters between two columns."""


def parts(widths: Sequence[int], room: int, gap: int = GAP) -> list[list[int]]:
    """Return the columns of each part, as indexes in order.

    Each part has column 0 and as many of the next columns as fit in ``room`` characters, at least one.
    """
    found: list[list[int]] = [[0]]
    used = widths[0]
    for index, width in enumerate(widths[1:], start=1):
        if len(found[-1]) > 1 and used + gap + width > room:
            found.append([0])
            used = widths[0]
        found[-1].append(index)
        used += gap + width
    return found


def fits(widths: Sequence[int], room: int, gap: int = GAP) -> bool:
    """Return whether all columns stand side by side in ``room`` characters."""
    return sum(widths) + gap * (len(widths) - 1) <= room
