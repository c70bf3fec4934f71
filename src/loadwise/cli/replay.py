"""``loadwise replay``: make the decisions of a leader again, from a file of ``consumer.rebalances.history()``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from loadwise.assignor.errors import BadHistoryError
from loadwise.assignor.group_history import GroupHistory
from loadwise.cli.text_files import read_text
from loadwise.counted import counted

if TYPE_CHECKING:
    import argparse

    from loadwise.cli.parser import Parser

DESCRIPTION = """Repeat the decisions of a group's leader, and compare them with the original ones.

In the application that leads the group, `consumer.rebalances.history().save("group.jsonl")` writes the latest readings
and decisions. The exit status is 1 if a decision differs."""
EPILOG = """example:
  loadwise replay group.jsonl"""


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the saved history of a group, as JSON lines")


def run(options: argparse.Namespace) -> int:
    """Print every decision, and those that differ."""
    try:
        history = GroupHistory.parse(read_text(options.file, BadHistoryError), str(options.file))
    except BadHistoryError as error:
        sys.stderr.write(f"loadwise replay: {error}\n")
        return 2
    lines = [f"{decision.now_ms / 1000:12,.1f} s  {decision}" for decision in history.decisions]
    differences = list(history.differences())
    for then, now in differences:
        lines += [f"was: {then or 'no decision'}", f"now: {now or 'no decision'}"]
    lines.append(f"{counted(len(history.decisions), 'decision')}, {len(differences) or 'none'} of them different now")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if differences else 0
