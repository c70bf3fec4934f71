"""Tables as the benchmarks print them and the docs have them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown that is readable as it is: the first column on the left, the others on the right."""
    lines = [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * widths[0], *("-" * max(width - 1, 2) + ":" for width in widths[1:])])
    return "\n".join(
        f"| {' | '.join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])])} |" for first, *others in lines
    )
