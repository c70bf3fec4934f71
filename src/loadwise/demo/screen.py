"""What the demo shows: live on a terminal, plain lines elsewhere (a log, a pipe), and the table in both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from loadwise.demo.figures import DEFINITIONS, Figures
from loadwise.demo.group import Plan, Sample
from loadwise.demo.second_act import Course
from loadwise.demo.stream_page import calm
from loadwise.folded_table import Head, folded

STYLES = ("blue", "dark_orange", "green", "magenta")
"""The colour of each member, here as on the page."""
_REFRESHES_PER_S = 8


class Screen:
    """Lines that stay, and below them, on a terminal only, one display that changes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None

    def line(self, text: str, style: str = "") -> None:
        """A line that stays."""
        self._console.print(Text(text, style), soft_wrap=not self._console.is_terminal)

    @contextmanager
    def display(self) -> Iterator[None]:
        """Make room for what `publishing` and `draining` show; it is removed at the end."""
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, refresh_per_second=_REFRESHES_PER_S, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def publishing(self, done: int, total: int) -> None:
        """Show how far the publishing is."""
        self._advance("publishing", done, total, f"{done:,} of {total:,}")

    def draining(self, plan: Plan, records: int, sample: Sample, before: Sample | None) -> None:
        """Show what each member has done and has left; ``before`` is a sample of about a second ago, for the pace."""
        if self._live is not None:
            self._live.update(_progress(plan, records, sample, before))

    def streaming(self, at_s: float, end_s: float) -> None:
        """Show how far the second act is."""
        self._advance("streaming", at_s, end_s, f"{at_s:.0f} of {end_s:.0f} s")

    def _advance(self, what: str, done: float, total: float, text: str) -> None:
        if self._live is not None:
            row = Table.grid(padding=(0, 1))
            row.add_row(what, ProgressBar(total=total, completed=done, width=40), text)
            self._live.update(row)

    def courses(self, courses: Sequence[Course]) -> None:
        """Print how each group did in the second act, the best first."""
        heads = [
            Head("assignor", is_number=False),
            *map(
                Head,
                ("mean lag of\nthe worst member", "largest", "calm after\nthe shift", "after\nthe crash", "rebalances"),
            ),
        ]
        rows = [
            [
                course.assignor,
                f"{course.late_s:.2f} s",
                f"{course.peak:,}",
                calm(course.recovered_s(course.script.shift_s, course.script.crash_s)),
                calm(course.recovered_s(course.script.crash_s, course.script.end_s)),
                str(course.rebalances),
            ]
            for course in courses
        ]
        self._console.print(folded(heads, [list(map(Text, row)) for row in rows], self._console.width))

    def table(self, rows: Sequence[Figures], members: int) -> None:
        """Print the table and what its rows mean."""
        self._console.print(_table(rows, members, self._console.width))
        meanings = Table.grid(padding=(0, 2))
        for name, text in DEFINITIONS:
            meanings.add_row(Text(name, "dim bold"), Text(text, "dim"))
        self._console.print(meanings)


def _progress(plan: Plan, records: int, sample: Sample, before: Sample | None) -> Group:
    head = Text.assemble(
        (plan.assignor, "bold"), f"  {sample.at_s:4.1f} s  {sample.done:,} of {records:,} records processed"
    )
    rows = Table.grid(padding=(0, 2))
    for justify in ("left", "left", "right", "right", "left", "right"):
        rows.add_column(justify=justify)
    rows.add_row(*(Text(name, "dim") for name in ("", "client", "partitions", "records/s", "left to process", "")))
    most = max(1, *sample.backlog)
    scale = max(most, records / 2)
    for number, client in enumerate(plan.clients):
        style = STYLES[number % len(STYLES)]
        pace = ""
        if before is not None and sample.at_s > before.at_s:
            pace = f"{(sample.records[number] - before.records[number]) / (sample.at_s - before.at_s):,.0f}"
        waiting = number == plan.late and sample.done * 2 < records
        rows.add_row(
            Text(f"member {number + 1}", style),
            Text(client),
            "joins half-way" if waiting else str(sample.partitions[number]),
            "" if waiting else pace,
            ProgressBar(
                total=scale, completed=sample.backlog[number], width=36, complete_style=style, finished_style=style
            ),
            f"{sample.backlog[number]:,}",
        )
    return Group(head, rows)


def _table(rows: Sequence[Figures], members: int, width: int) -> Group:
    """An assignor a column: eighty characters hold five of them."""
    # The longest name breaks at its hyphen.
    heads = [Head("", is_number=False), *(Head(row.assignor.replace("cooperative-", "cooperative-\n")) for row in rows)]
    lines = [
        *((f"records, member {number + 1}", [f"{row.records[number]:,}" for row in rows]) for number in range(members)),
        ("max/mean, 3 members", [f"{row.max_mean_first:.2f}" for row in rows]),
        ("  largest first", [f"{row.greedy_first:.2f}" for row in rows]),
        ("max/mean, 4 members", [f"{row.max_mean_last:.2f}" for row in rows]),
        ("  largest first", [f"{row.greedy_last:.2f}" for row in rows]),
        ("drained", [f"{row.drained_s:.1f} s" for row in rows]),
        ("ideal", [f"{row.ideal_s:.1f} s" for row in rows]),
        ("drained / ideal", [f"{row.against_ideal:.2f}" for row in rows]),
        ("keeps up to", [f"{row.keeps_up_per_s:,.0f}/s" for row in rows]),
        ("rebalances", [str(row.rebalances) for row in rows]),
        (f"moved, of {rows[0].partitions}", [str(row.moved) for row in rows]),
    ]
    return folded(heads, [[Text(name), *map(Text, cells)] for name, cells in lines], width)
