"""The measurements as text: a table a size, and how the time grows with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from benchmarks.speed.measure import AIOKAFKA, JAVA, KAFKA_PYTHON, OURS, SERVER, TOO_SLOW, Cell

HEADS = (
    "strategy, phase",
    "loadwise",
    "bare",
    "Java",
    "ratio",
    "Java server",
    "ratio",
    "kafka-python",
    "ratio",
    "aiokafka",
    "ratio",
    "wire",
    "Java wire",
    "ratio",
    "memory",
    "Java memory",
)

LEGEND = (
    ("loadwise", "from decoded subscriptions to every member's partitions by name, median, in ms"),
    ("bare", "the algorithm alone within that: rows in, rows out"),
    (
        "Java, Java server",
        "Kafka's client-side assignor, and the KIP-848 one of the broker, which works on ids, not names",
    ),
    ("ratio", "our time divided by theirs: below 1 we are faster"),
    ("wire", "from JoinGroup's bytes to SyncGroup's, all members decoded and encoded"),
    ("memory", "the highest use of one call above its input, in MB; Java's is that of its heap, garbage included"),
)


def row(cells: Sequence[Cell]) -> list[str]:
    """One case as the columns of `HEADS`."""
    by_runner = {cell.runner: cell for cell in cells}
    ours = by_runner[OURS]
    columns = [f"{ours.strategy}, {ours.phase}", _ms(ours, "names"), _ms(ours, "bare")]
    for runner in (JAVA, SERVER, KAFKA_PYTHON, AIOKAFKA):
        other = by_runner.get(runner)
        columns += [_ms(other, "names"), _ratio(ours, other, "names")]
    java = by_runner.get(JAVA)
    columns += [_ms(ours, "wire"), _ms(java, "wire"), _ratio(ours, java, "wire")]
    return [*columns, _megabytes(ours), _megabytes(java)]


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a table that reads well as it is."""
    lines = [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    for first, *others in lines:
        cells = [first.ljust(widths[0]), *(text.rjust(width) for text, width in zip(others, widths[1:], strict=True))]
        yield f"| {' | '.join(cells)} |"


def growth(cells: Iterable[Cell]) -> Iterator[list[str]]:
    """Rows of strategy and phase, the time at every size, and the exponents e between them: time ~ partitions^e."""
    series: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        if cell.runner == OURS:
            series.setdefault((cell.strategy, cell.phase), []).append(cell)
    for (strategy, phase), points in series.items():
        yield [f"{strategy}, {phase}", *(_ms(point, "names") for point in points), *_exponents(points)]


def _exponents(points: Sequence[Cell]) -> Iterator[str]:
    for measure in ("names", "bare"):
        for small, large in pairwise(points if measure in points[0].seconds else []):
            grown = math.log(large.seconds[measure] / small.seconds[measure])
            yield f"{grown / math.log(large.size.partitions / small.size.partitions):.2f}"


def _ms(cell: Cell | None, measure: str) -> str:
    if cell is None:
        return ""
    if cell.gave_up:
        return cell.gave_up if cell.gave_up == TOO_SLOW else "fails"
    seconds = cell.seconds.get(measure)
    if seconds is None:
        return ""
    return f"{seconds * 1000:.3g}" if seconds < 1 else f"{seconds * 1000:,.0f}"


def _ratio(ours: Cell, other: Cell | None, measure: str) -> str:
    if other is None or measure not in other.seconds or measure not in ours.seconds:
        return ""
    return f"{ours.seconds[measure] / other.seconds[measure]:.2f}"


def _megabytes(cell: Cell | None) -> str:
    return f"{cell.above_bytes / 1e6:,.0f}" if cell is not None and cell.total_bytes else ""
