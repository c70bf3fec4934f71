"""The measurements as text: a table for each size, and one of all sizes as ``docs/benchmarks.md`` has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.speed.measure import JAVA, OURS, SERVER, TOO_SLOW, Cell

HEADS = (
    *("strategy, phase", "loadwise", "bare", "Java", "ratio", "Java server", "ratio"),
    *("wire", "Java wire", "ratio", "memory", "Java memory"),
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
    ours, java, server = by_runner[OURS], by_runner.get(JAVA), by_runner.get(SERVER)
    columns = [f"{ours.strategy}, {ours.phase}", _ms(ours, "names"), _ms(ours, "bare")]
    for other in (java, server):
        columns += [_ms(other, "names"), _ratio(ours, other, "names")]
    columns += [_ms(ours, "wire"), _ms(java, "wire"), _ratio(ours, java, "wire")]
    return [*columns, _megabytes(ours), _megabytes(java)]


def all_sizes(cases: Iterable[Sequence[Cell]]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of our time and its ratios to Java's, in every size."""
    heads, rows = ["strategy, phase"], dict[str, list[str]]()
    for case in cases:
        by_runner = {cell.runner: cell for cell in case}
        ours, java = by_runner[OURS], by_runner.get(JAVA)
        if f"{ours.size.name}, ms" not in heads:
            heads += [f"{ours.size.name}, ms", "ratio", "wire"]
        cells = [_ms(ours, "names"), _ratio(ours, java, "names"), _ratio(ours, java, "wire")]
        rows.setdefault(f"{ours.strategy}, {ours.phase}", []).extend(cells)
    return heads, [[name, *cells] for name, cells in rows.items()]


def gave_up(cells: Iterable[Cell]) -> Iterator[str]:
    """A line for each assignor that has no times, with the reason."""
    yield from sorted(
        {f"{cell.runner}, {cell.strategy}, {cell.phase}: {cell.gave_up}" for cell in cells if cell.gave_up}
    )


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
