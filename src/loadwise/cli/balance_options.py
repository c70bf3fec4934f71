"""The options of ``loadwise balance``."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from loadwise.balance.batches import MOVES_PER_BROKER
from loadwise.balance.kafka_files import PATTERN
from loadwise.balance.plan import HEADROOM
from loadwise.balance.scope import Scope
from loadwise.balance.table import MEANINGS
from loadwise.cli.parser import add_command_config, at_least, whole_number

if TYPE_CHECKING:
    from loadwise.cli.parser import Parser

DESCRIPTION = """Plan how to bring the bytes in, bytes out and disk of each broker within a tenth of its share.

A share is the same part of the stated capacity for all brokers; without capacities it is the mean.

Leaders change first, because that moves no bytes; then replicas move, as few bytes as possible. Racks and stated
capacities are kept. A plan is a sequence of batches: in none does a disk exceed the headroom while replicas are copied.
Nothing changes until Kafka's own tools execute the files that --out writes, or --follow executes them."""
EPILOG = f"""columns:
{chr(10).join(f"  {name:9}  {meaning}" for name, meaning in MEANINGS)}

examples:
  loadwise balance --bootstrap-servers broker:9092 --out plan
  loadwise balance --bootstrap-servers broker:9092 --follow plan --throttle 50MB
  loadwise balance --bootstrap-servers broker:9092 --save cluster.json
  loadwise balance cluster.json --capacities capacities.json --html plan.html"""
_MULTIPLES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    source = parser.add_argument_group("the cluster (one of the first two)")
    source.add_argument(
        "cluster",
        nargs="?",
        type=Path,
        metavar="CLUSTER",
        help="a JSON file with brokers and partitions; `python -m pydoc loadwise.balance.files` describes the format",
    )
    source.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT", help="a running cluster; without --follow it is only read"
    )
    source.add_argument(
        "--interval",
        dest="interval_s",
        type=at_least(0.1),
        metavar="SECONDS",
        help="with --bootstrap-servers: how long to measure the bytes in (default: 10)",
    )
    source.add_argument(
        "--reads",
        type=at_least(0.0),
        metavar="NUMBER",
        help="with --bootstrap-servers: how many consumer groups read each record, for the bytes out (default: 1)",
    )
    add_command_config(source, "with --bootstrap-servers: ")
    source.add_argument(
        "--capacities",
        type=Path,
        metavar="FILE",
        help='the most that brokers may carry, as JSON: {"1": {"disk_bytes": 5e11, "bytes_in_per_s": 1e8}}. If all'
        " brokers have a capacity, shares are in proportion to it. A broker with a capacity of 0 is emptied",
    )
    source.add_argument(
        "--save",
        type=Path,
        metavar="FILE",
        help="write the cluster to a CLUSTER file, so that it can be planned elsewhere",
    )
    scope = parser.add_argument_group("what the plan may change")
    scope.add_argument(
        "--add",
        type=_ids,
        metavar="IDS",
        help="fill these brokers, such as 7,8: replicas and leaders move only to them",
    )
    scope.add_argument("--remove", type=_ids, metavar="IDS", help="empty these brokers, so that they can be stopped")
    scope.add_argument(
        "--exclude-brokers",
        type=_ids,
        metavar="IDS",
        help="leave these brokers alone: they neither gain nor lose replicas or leaders",
    )
    scope.add_argument(
        "--exclude-topics",
        type=_names,
        metavar="NAMES",
        help="leave these topics alone: names, or patterns with * and ?, such as '__*,orders'",
    )
    scope.add_argument(
        "--max-moved",
        type=_bytes,
        metavar="BYTES",
        help="move at most this much, such as 500GB, beginning with what helps most",
    )
    scope.add_argument(
        "--headroom",
        type=_part,
        default=HEADROOM,
        metavar="PART",
        help=f"the part of each stated disk that a plan may fill (default: {HEADROOM:g})",
    )
    batches = parser.add_argument_group("the batches")
    batches.add_argument(
        "--moves-per-broker",
        type=whole_number(least=1),
        default=MOVES_PER_BROKER,
        metavar="NUMBER",
        help=f"how many partitions may move from or to a broker at a time (default: {MOVES_PER_BROKER})",
    )
    batches.add_argument(
        "--throttle",
        type=_rate,
        metavar="BYTES",
        help="brokers copy at most this many bytes per second, such as 50MB; the estimated times use it too",
    )
    batches.add_argument(
        "--follow",
        nargs="?",
        const="",
        metavar="FOLDER",
        help="execute the batches in this folder, or those of a new plan, one by one, starting from the current state."
        " At the first surprise, stop, cancel what is under way and remove the throttles",
    )
    shown = parser.add_argument_group("the plan")
    shown.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help=f"write {PATTERN} for Kafka's tools to this folder, to be run in order, and remove those of an older plan",
    )
    shown.add_argument(
        "--html", type=Path, metavar="FILE", help="also write a page with the table and a chart for each resource"
    )
    shown.add_argument("--json", dest="as_json", action="store_true", help="print JSON instead of the table")


def scope_of(options: argparse.Namespace) -> Scope:
    """What the plan may change."""
    none: frozenset[int] = frozenset()
    return Scope(
        add=options.add or none,
        remove=options.remove or none,
        exclude_brokers=options.exclude_brokers or none,
        exclude_topics=options.exclude_topics or (),
        max_moved_bytes=float("inf") if options.max_moved is None else options.max_moved,
    )


def _ids(text: str) -> frozenset[int]:
    ids = text.split(",")
    if not all(each.isascii() and each.isdecimal() for each in ids):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of broker ids such as 7,8")
    return frozenset(map(int, ids))


def _names(text: str) -> tuple[str, ...]:
    names = tuple(each.strip() for each in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty name; expected topics such as orders,audit-*")
    return names


def _bytes(text: str) -> float:
    found = re.fullmatch(r"([0-9.]+(?:e[0-9]+)?) ?([kMGT]?)B?", text)
    try:
        return float(found[1]) * _MULTIPLES[found[2]] if found else _not_bytes(text)
    except ValueError:
        return _not_bytes(text)


def _rate(text: str) -> float:
    if not (rate := _bytes(text)) >= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate of at least one byte per second")
    return rate


def _not_bytes(text: str) -> float:
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes such as 5e11 or 500GB")


def _part(text: str) -> float:
    value = at_least(0.0)(text)
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0 and at most 1")
    return value
