"""``loadwise compare``: every assignor on one group, as a table, a page or JSON."""

from __future__ import annotations

import datetime
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import loadwise
from loadwise.assignor.algorithms import ALGORITHMS
from loadwise.assignor.errors import BadGroupError, GroupTooLargeError, MissingClientError, UnknownStrategyError
from loadwise.cli.text_files import read_text
from loadwise.compare.columns import COLUMNS, best
from loadwise.compare.comparison import Comparison, assignor_named
from loadwise.compare.comparison import compare as compare_assignors
from loadwise.compare.errors import BadInputError, CompareError
from loadwise.compare.files import from_case, from_history, from_loads
from loadwise.compare.page import render
from loadwise.compare.scenarios import SCENARIOS, scenario
from loadwise.compare.situation import LiveLoad, Situation, Uncommitted
from loadwise.running_group.command_config import client_settings
from loadwise.running_group.errors import BadConnectionError, RunningGroupError

if TYPE_CHECKING:
    from rich.console import RenderableType

_SOURCES = "give a case file, or --loads with --members, or --bootstrap-servers with --group, or --scenario"


def compare(
    *,
    case: Annotated[
        Path | None,
        typer.Argument(
            metavar="CASE",
            help="A group as a JSON file: the object that `loadwise assign` takes, its strategy left out.",
            show_default=False,
        ),
    ] = None,
    loads: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Loads as CSV with the header topic,partition,load, or the table that `loadwise loads` wrote"
            " (.parquet): its bytes of an hour on average. Needs --members.",
        ),
    ] = None,
    members: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="With --loads: how many equal members share them.")
    ] = None,
    bootstrap_servers: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="The Kafka of a running group; needs --group.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="A running group of either protocol: its members, what they own, and their load. It is only read.",
        ),
    ] = None,
    load: Annotated[
        LiveLoad | None,
        typer.Option(
            help="With --group: what is balanced. `lag`: the records that wait (the default). `rate`: the records that"
            " arrived in each second of the last minute. `demand`: that rate, and the lag drained within --horizon."
        ),
    ] = None,
    horizon_s: Annotated[
        float | None,
        typer.Option(
            "--horizon", min=1.0, metavar="SECONDS", help="With --load demand: the time to drain the lag in; 60."
        ),
    ] = None,
    uncommitted: Annotated[
        Uncommitted,
        typer.Option(
            help="With --group: where its members begin in a partition without a commit, their auto.offset.reset. All"
            " of its records are before them, or none."
        ),
    ] = Uncommitted.EARLIEST,
    command_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --group: how to connect, in the properties file of Kafka's own tools"
            " (security.protocol, sasl.*, ssl.*).",
        ),
    ] = None,
    scenario_name: Annotated[
        str | None, typer.Option("--scenario", metavar="NAME", help=f"A built-in group: {', '.join(SCENARIOS)}.")
    ] = None,
    assignor: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Only this one; may be given again. Without: {', '.join(ALGORITHMS)}."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page too: the table, and a picture of every assignor.")
    ] = None,
) -> None:
    """Compare what each assignor makes of one group: how even the load, how much moves, how long it takes.

    Nothing is changed anywhere: a running group is only looked at. Begin with a built-in one:

    `loadwise compare --scenario flights`

    or with your own topic, whose loads you have in a file, shared by four consumers:

    `loadwise compare --loads loads.csv --members 4 --html compare.html`

    The answers are targets: a cooperative assignor's is the same as its eager twin's, and takes two rebalances.
    """
    try:
        names = _names(assignor)
        situation = _situation(
            case=case,
            loads=loads,
            members=members,
            bootstrap_servers=bootstrap_servers,
            group=group,
            load=load,
            horizon_s=horizon_s,
            uncommitted=uncommitted,
            command_config=command_config,
            scenario_name=scenario_name,
        )
        comparison = compare_assignors(situation, names, time.perf_counter)
    except (BadInputError, BadConnectionError) as error:
        typer.echo(f"loadwise compare: {error}", err=True)
        raise typer.Exit(2) from error
    except (CompareError, RunningGroupError, MissingClientError, GroupTooLargeError) as error:
        typer.echo(f"loadwise compare: {error}", err=True)
        raise typer.Exit(1) from error
    if html is not None:
        _write(html, comparison)
    if as_json:
        typer.echo(json.dumps(comparison.as_json(), allow_nan=False))
    else:
        _show(comparison)
        if html is not None:
            typer.echo(f"The pictures: {html.resolve()}")


def _names(given: list[str] | None) -> list[str]:
    names = list(dict.fromkeys(given or ALGORITHMS))
    for name in names:
        try:
            assignor_named(name)
        except UnknownStrategyError as error:
            raise BadInputError(f"--assignor {name}: {error}") from error
    return names


def _situation(
    *,
    case: Path | None,
    loads: Path | None,
    members: int | None,
    bootstrap_servers: str | None,
    group: str | None,
    load: LiveLoad | None,
    horizon_s: float | None,
    uncommitted: Uncommitted,
    command_config: Path | None,
    scenario_name: str | None,
) -> Situation:
    if (loads is None) != (members is None):
        raise BadInputError("--loads FILE and --members NUMBER go together: loads, and how many members share them")
    if (bootstrap_servers is None) != (group is None):
        raise BadInputError("--bootstrap-servers HOST:PORT and --group ID go together")
    if command_config is not None and group is None:
        raise BadInputError("--command-config FILE tells how to connect, and needs --bootstrap-servers and --group")
    if load is not None and group is None:
        raise BadInputError(f"--load {load} is of a running group; it needs --bootstrap-servers and --group")
    if horizon_s is not None and load is not LiveLoad.DEMAND:
        raise BadInputError("--horizon is the time to drain the lag in; it needs --load demand")
    given = [source for source in (case, loads, bootstrap_servers, scenario_name) if source is not None]
    if len(given) != 1:
        raise BadInputError(f"{len(given) or 'no'} group{'s' * (len(given) > 1)} given; {_SOURCES}")
    if case is not None:
        return from_case(read_text(case, BadInputError), str(case))
    if loads is not None and members is not None:
        return _from_table(loads, members)
    if bootstrap_servers is not None and group is not None:
        from loadwise.compare.live import read_situation

        settings = (
            {}
            if command_config is None
            else client_settings(read_text(command_config, BadInputError), str(command_config))
        )
        return read_situation(
            bootstrap_servers,
            group,
            load=load or LiveLoad.LAG,
            horizon_s=horizon_s or 60.0,
            uncommitted=uncommitted,
            settings=settings,
        )
    assert scenario_name is not None
    return scenario(scenario_name)


def _from_table(loads: Path, members: int) -> Situation:
    if loads.suffix != ".parquet" and not loads.is_dir():
        return from_loads(read_text(loads, BadInputError), str(loads), members)
    from loadwise.assignor.load.history import history

    try:
        found = history(loads, hot=0)
    except BadGroupError as error:
        raise BadInputError(str(error)) from error
    return from_history(found, str(loads), members, by="bytes")


def _write(path: Path, comparison: Comparison) -> None:
    footer = f"loadwise {loadwise.__version__}, {datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"
    try:
        # JSON lets a name have half of a surrogate pair, which UTF-8 has no bytes for: it is shown as JSON writes it.
        path.write_text(render(comparison, footer), encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        typer.echo(f"loadwise compare: --html {path} cannot be written: {error.strerror}", err=True)
        raise typer.Exit(2) from error


def _show(comparison: Comparison) -> None:
    from rich.console import Console
    from rich.text import Text

    # A pipe or a log has no width of its own.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    group = comparison.group
    unit = f", loads in {group.load_unit}" if group.load_unit else ""
    console.print(Text(comparison.about, "bold"))
    console.print(Text(f"{group.size:,} partitions, {len(group.members):,} members{unit}."))
    for note in comparison.notes:
        console.print(Text(note))
    console.print()
    console.print(table(comparison, console.width))


def table(comparison: Comparison, width: int) -> RenderableType:
    """The table, in so many characters: its columns move together where it would not fit."""
    from rich.console import Console
    from rich.measure import Measurement

    roomy = _table(comparison, padding=1)
    console = Console(width=10 * width)
    fits = Measurement.get(console, console.options, roomy).maximum <= width
    return roomy if fits else _table(comparison, padding=0)


def _table(comparison: Comparison, padding: int) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    rows = comparison.rows
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False, padding=(0, 0, 0, padding))
    table.add_column("assignor", no_wrap=True, vertical="bottom")
    winners = {}
    for column in COLUMNS:
        # Two lines for "moved load" and "max/mean", so that eighty characters hold it all.
        table.add_column(
            column.name.replace(" ", "\n").replace("/", "/\n"), justify="right", no_wrap=True, vertical="bottom"
        )
        winners[column.name] = best(column, rows)
    for index, row in enumerate(rows):
        cells = [
            Text(column.text(column.number(row)), "green" if index in winners[column.name] else "")
            for column in COLUMNS
        ]
        table.add_row(row.assignor, *cells)
    return table
