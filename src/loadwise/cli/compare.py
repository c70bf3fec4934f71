"""``loadwise compare``: every assignor on one group, as a table, a page or JSON."""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadwise.assignor.algorithms import ALGORITHMS
from loadwise.assignor.errors import BadGroupError, GroupTooLargeError, MissingClientError
from loadwise.assignor.strategy import strategies
from loadwise.cli.parser import Parser, add_command_config, at_least, one_of, whole_number
from loadwise.cli.progress import bar, waiting
from loadwise.cli.tables import show
from loadwise.cli.text_files import read_settings, read_text, write_page
from loadwise.cli.uncommitted import add_uncommitted
from loadwise.compare.columns import COLUMNS
from loadwise.compare.comparison import compare as compare_assignors
from loadwise.compare.errors import BadInputError, CompareError
from loadwise.compare.files import from_case, from_history, from_loads
from loadwise.compare.page import render
from loadwise.compare.scenarios import SCENARIOS, scenario
from loadwise.compare.situation import LiveLoad, Situation
from loadwise.running_group.errors import BadConnectionError, RunningGroupError

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """Compare the assignors on one group: how even the load is, how much of it moves, and how long it takes.

Nothing is changed; a running group is only read. The results are targets. A cooperative assignor has the same target as
the eager one, and reaches it in two rebalances."""
EPILOG = f"""columns:
{chr(10).join(f"  {column.name:10}  {column.meaning}" for column in COLUMNS)}

examples:
  loadwise compare --scenario flights
  loadwise compare --loads loads.csv --members 4 --html compare.html
  loadwise compare --bootstrap-servers broker:9092 --group billing --load demand"""
_ASSIGNORS = [*ALGORITHMS, *(name for name in strategies() if name not in ALGORITHMS)]
_SOURCES = "give a case file, or --loads with --members, or --bootstrap-servers with --group, or --scenario"


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    source = parser.add_argument_group("the group (one of them)")
    source.add_argument(
        "case",
        nargs="?",
        type=Path,
        metavar="CASE",
        help="a group as a JSON file: the object that `loadwise assign` reads, without its strategy",
    )
    source.add_argument(
        "--loads",
        type=Path,
        metavar="FILE",
        help="loads as CSV with the header topic,partition,load, or a table from `loadwise loads` (.parquet), of which"
        " the mean bytes per hour are used; needs --members",
    )
    source.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT", help="a broker of a running group's cluster; needs --group"
    )
    source.add_argument(
        "--scenario",
        dest="scenario_name",
        metavar="NAME",
        type=one_of(SCENARIOS),
        choices=list(SCENARIOS),
        help=f"a built-in group: {', '.join(SCENARIOS)}",
    )
    more = parser.add_argument_group("more about the group")
    more.add_argument(
        "--members",
        type=whole_number(least=1),
        metavar="NUMBER",
        help="with --loads: the number of members, all equal, that share them",
    )
    more.add_argument(
        "--group", metavar="ID", help="a running group, of either protocol; its members, assignment and load are read"
    )
    more.add_argument(
        "--load",
        type=one_of(LiveLoad),
        choices=list(LiveLoad),
        metavar="KIND",
        help="with --group: what to balance. lag: the waiting records (the default). rate: the records that arrived per"
        " second in the last minute. demand: that rate, plus the lag divided by --horizon",
    )
    more.add_argument(
        "--horizon",
        dest="horizon_s",
        type=at_least(1.0),
        metavar="SECONDS",
        help="with --load demand: the time in which the lag should be drained (default: 60)",
    )
    add_uncommitted(
        more,
        "with --group: where its members start in a partition without a commit (auto.offset.reset): all of its"
        " records are waiting (earliest), or none (latest)",
    )
    add_command_config(more, "with --group: ")
    shown = parser.add_argument_group("what is shown")
    shown.add_argument(
        "--assignor",
        action="append",
        type=one_of(_ASSIGNORS),
        choices=_ASSIGNORS,
        metavar="NAME",
        help=f"compare only this one; may be repeated (default: {', '.join(ALGORITHMS)})",
    )
    shown.add_argument("--json", dest="as_json", action="store_true", help="print JSON instead of the table")
    shown.add_argument(
        "--html", type=Path, metavar="FILE", help="also write a page with the table and a chart for each assignor"
    )


def run(options: argparse.Namespace) -> int:
    """Compare; the status is 2 for wrong input, and 1 where a group cannot be read or compared."""
    names = list(dict.fromkeys(options.assignor or ALGORITHMS))
    try:
        with waiting("reading the group"):
            situation = _situation(options)
        comparison = compare_assignors(situation, bar(names, "asking every assignor"), time.perf_counter)
        if options.html is not None:
            write_page(options.html, partial(render, comparison), BadInputError)
    except (BadInputError, BadConnectionError) as error:
        return _failed(error, 2)
    except (CompareError, RunningGroupError, MissingClientError, GroupTooLargeError) as error:
        return _failed(error, 1)
    if options.as_json:
        sys.stdout.write(json.dumps(comparison.as_json(), allow_nan=False) + "\n")
        return 0
    show(comparison)
    if options.html is not None:
        sys.stdout.write(f"Charts: {options.html.resolve()}\n")
    return 0


def _failed(error: Exception, status: int) -> int:
    sys.stderr.write(f"loadwise compare: {error}\n")
    return status


def _situation(options: argparse.Namespace) -> Situation:
    loads: Path | None = options.loads
    servers: str | None = options.bootstrap_servers
    load: LiveLoad | None = options.load
    if (loads is None) != (options.members is None):
        raise BadInputError("--loads FILE and --members NUMBER go together: loads, and how many members share them")
    if (servers is None) != (options.group is None):
        raise BadInputError("--bootstrap-servers HOST:PORT and --group ID go together")
    if options.command_config is not None and servers is None:
        raise BadInputError("--command-config FILE says how to connect, and needs --bootstrap-servers and --group")
    if load is not None and servers is None:
        raise BadInputError(f"--load {load} needs a running group: --bootstrap-servers and --group")
    if options.horizon_s is not None and load is not LiveLoad.DEMAND:
        raise BadInputError("--horizon, the time in which the lag should be drained, needs --load demand")
    given = [each for each in (options.case, loads, servers, options.scenario_name) if each is not None]
    if len(given) != 1:
        raise BadInputError(f"{len(given) or 'no'} group{'s' * (len(given) > 1)} given; {_SOURCES}")
    if options.case is not None:
        return from_case(read_text(options.case, BadInputError), str(options.case))
    if loads is not None:
        return _from_table(loads, options.members)
    if servers is None:
        return scenario(options.scenario_name)
    from loadwise.compare.live import read_situation

    return read_situation(
        servers,
        options.group,
        load=load or LiveLoad.LAG,
        horizon_s=options.horizon_s or 60.0,
        uncommitted=options.uncommitted,
        settings=read_settings(options.command_config),
    )


def _from_table(loads: Path, members: int) -> Situation:
    if loads.suffix != ".parquet" and not loads.is_dir():
        return from_loads(read_text(loads, BadInputError), str(loads), members)
    from loadwise.assignor.load.history import history

    if not loads.exists():
        raise BadInputError(f"there is no file {loads}")
    try:
        found = history(loads, hot=0)
    except BadGroupError as error:
        raise BadInputError(str(error)) from error
    return from_history(found, str(loads), members, by="bytes")
