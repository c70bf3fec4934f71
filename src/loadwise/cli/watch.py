"""``loadwise watch``: a running group of any client and either protocol, live in the terminal."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loadwise.assignor.algorithms import ALGORITHMS
from loadwise.assignor.errors import MissingClientError
from loadwise.cli.text_files import read_text
from loadwise.compare.situation import Uncommitted
from loadwise.running_group.command_config import client_settings
from loadwise.running_group.errors import BadConnectionError, RunningGroupError, UnreadableGroupError

if TYPE_CHECKING:
    from rich.live import Live

    from loadwise.compare.comparison import Comparison
    from loadwise.running_group.admin import GroupAdmin
    from loadwise.running_group.members import Reading
    from loadwise.watch.status import GroupStatus


def watch(
    *,
    bootstrap_servers: Annotated[str, typer.Option(metavar="HOST:PORT", help="The Kafka of the group.")],
    group: Annotated[str, typer.Option(metavar="ID", help="The group to look at. It is only read.")],
    interval_s: Annotated[
        float, typer.Option("--interval", min=0.1, metavar="SECONDS", help="Time between two readings.")
    ] = 5.0,
    window_s: Annotated[
        float,
        typer.Option(
            "--window",
            min=0.1,
            metavar="SECONDS",
            help="Rates are those of so many seconds; longer than the consumers' auto.commit.interval.ms.",
        ),
    ] = 30.0,
    uncommitted: Annotated[
        Uncommitted,
        typer.Option(help="Where members begin in a partition without a commit, their auto.offset.reset."),
    ] = Uncommitted.EARLIEST,
    command_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="How to connect, in the properties file of Kafka's own tools (security.protocol, sasl.*, ssl.*).",
        ),
    ] = None,
    readings: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="End after so many readings. Without: on Ctrl-C.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each reading.")] = False,
) -> None:
    """Watch a group: who falls behind, who has time left, and whether the group as a whole suffices.

    The utilisation of a member is known while it has a backlog, because only then it shows what it can process.
    Members of any client are seen, and both protocols. Nothing is changed. What cannot be read now, because a broker
    or all members restart, is told, and read again after the interval.
    """
    try:
        settings = (
            {}
            if command_config is None
            else client_settings(read_text(command_config, BadConnectionError), str(command_config))
        )
        from loadwise.running_group.admin import connected

        with connected(bootstrap_servers, settings, client_id="loadwise-watch") as admin:
            _watch(
                admin,
                group,
                interval_s=interval_s,
                window_s=window_s,
                from_beginning=uncommitted is Uncommitted.EARLIEST,
                readings=readings,
                as_json=as_json,
            )
    except BadConnectionError as error:
        typer.echo(f"loadwise watch: {error}", err=True)
        raise typer.Exit(2) from error
    except (RunningGroupError, MissingClientError) as error:
        typer.echo(f"loadwise watch: {error}", err=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _watch(
    admin: GroupAdmin,
    group_id: str,
    *,
    interval_s: float,
    window_s: float,
    from_beginning: bool,
    readings: int | None,
    as_json: bool,
) -> None:
    from rich.console import Console
    from rich.live import Live

    from loadwise.running_group.reading import read, read_retention_ms
    from loadwise.watch.screen import as_json as told
    from loadwise.watch.screen import shown
    from loadwise.watch.status import status

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    live = Live(console=console, auto_refresh=False) if console.is_terminal and not as_json else None
    seen: list[Reading] = []
    retention_ms: dict[str, int] = {}
    if live is not None:
        live.start()
    try:
        for count in itertools.count(1):
            begun_s = time.monotonic()
            try:
                newest = read(admin, group_id)
            except UnreadableGroupError as error:
                if not seen:
                    raise
                # Brokers and members are restarted, and a watch outlives that.
                _tell(error, live)
            else:
                retention_ms.update(read_retention_ms(admin, [t for t in newest.partitions if t not in retention_ms]))
                # The last one counts however long ago it was: with an interval above the window there is no other.
                seen = [*(each for each in seen[:-1] if newest.at_s - each.at_s <= window_s), *seen[-1:], newest]
                now = status(seen, from_beginning=from_beginning, retention_ms=retention_ms)
                comparison = _compared(seen, now, from_beginning=from_beginning)
                if as_json:
                    typer.echo(json.dumps(told(now, comparison), allow_nan=False))
                elif live is not None:
                    live.update(shown(now, comparison), refresh=True)
                else:
                    console.print(shown(now, comparison))
                    console.print()
            if count == readings:
                return
            time.sleep(max(interval_s - (time.monotonic() - begun_s), 0.0))
    finally:
        if live is not None:
            live.stop()


def _tell(error: UnreadableGroupError, live: Live | None) -> None:
    text = f"loadwise watch: {error}"
    if live is None:
        typer.echo(text, err=True)
    else:
        live.console.print(text, style="yellow", markup=False)


def _compared(seen: Sequence[Reading], now: GroupStatus, *, from_beginning: bool) -> Comparison | None:
    """What the assignors would give the members, by their demand; None until rates are known or while nothing is."""
    from loadwise.compare.comparison import compare
    from loadwise.watch.demand import situation

    asked = situation(seen, window_s=now.window_s, from_beginning=from_beginning)
    return None if asked is None else compare(asked, tuple(ALGORITHMS), time.perf_counter)
