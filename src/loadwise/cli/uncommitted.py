"""The option for where members of a running group begin in a partition without a commit."""

from __future__ import annotations

import argparse

from loadwise.cli.parser import one_of
from loadwise.compare.situation import Uncommitted

MEANING = "where members start in a partition without a commit (auto.offset.reset): earliest or latest"


def add_uncommitted(group: argparse._ArgumentGroup, meaning: str = MEANING) -> None:
    """Add ``--uncommitted``; members begin with the first record by default."""
    group.add_argument(
        "--uncommitted",
        type=one_of(Uncommitted),
        choices=list(Uncommitted),
        metavar="WHERE",
        default=Uncommitted.EARLIEST,
        help=meaning,
    )
