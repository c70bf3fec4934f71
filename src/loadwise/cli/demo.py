"""``loadwise demo``: a real skewed stream through every assignor."""

from __future__ import annotations

import asyncio
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

_FLIGHTS = 336_776


class AssignorName(StrEnum):
    """What ``--assignor`` takes."""

    RANGE = "range"
    ROUNDROBIN = "roundrobin"
    STICKY = "sticky"
    COOPERATIVE_STICKY = "cooperative-sticky"
    WEIGHTED = "weighted"
    COOPERATIVE_WEIGHTED = "cooperative-weighted"


def demo(
    *,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Run against this Kafka. Without: loadwise's own coordinator."),
    ] = None,
    assignor: Annotated[
        list[AssignorName] | None,
        typer.Option(
            metavar="NAME",
            help="Show this assignor only; may be given again. Without: range, roundrobin, sticky, cooperative-sticky"
            " and weighted; there is cooperative-weighted too.",
        ),
    ] = None,
    records: Annotated[
        int, typer.Option(min=100, max=_FLIGHTS, metavar="NUMBER", help="Publish only the first so many flights.")
    ] = (_FLIGHTS),
    rate: Annotated[
        float, typer.Option(min=100, metavar="RECORDS/S", help="What each member processes a second at most.")
    ] = 15_000,
    arrival_rate: Annotated[
        float,
        typer.Option(
            min=1,
            metavar="RECORDS/S",
            help="The pace for the verdict on capacity. The default replays the year in ten seconds.",
        ),
    ] = _FLIGHTS / 10,
    stream_seconds: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="How long the second act takes: a stream whose hot keys move, and a killed member; 0 skips it.",
        ),
    ] = 100,
    html: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the page with the pictures.")] = Path(
        "loadwise-demo.html"
    ),
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Read the topic with PySpark too, where there is a JDK.")
    ] = True,
) -> None:
    """Drain a real, skewed stream with every assignor and compare them.

    Publishes the flights of 2013 from New York (one record a flight, keyed by carrier) to a topic of 36 partitions.
    For each assignor three consumers, kafka-python and aiokafka mixed, drain it; a fourth joins half-way.

    In the second act records arrive all the time, and groups under several assignors read them at once. The hot keys
    move, and later a member of each group is killed.

    Prints a table, writes a page with the pictures, and checks that every record was processed; the exit status is not
    0 if something of it fails. Takes about three and a half minutes.
    """
    from rich.console import Console

    from loadwise.demo.errors import DemoError
    from loadwise.demo.run import ASSIGNORS, Settings, run_demo
    from loadwise.demo.screen import Screen

    # A pipe or a log has no width of its own.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    try:
        html.open("a").close()  # it is written at the end, and whoever waited for it should get it
    except OSError as error:
        text = f"loadwise demo: --html {html} cannot be written: {error.strerror}"
        console.print(text, markup=False, soft_wrap=True)
        raise typer.Exit(2) from None
    settings = Settings(
        assignors=[name.value for name in assignor] if assignor else ASSIGNORS,
        bootstrap_servers=bootstrap_servers,
        records=records,
        rate_per_s=rate,
        arrival_per_s=arrival_rate,
        stream_s=stream_seconds,
        html=html,
        spark=spark,
    )
    try:
        asyncio.run(run_demo(settings, Screen(console)))
    except DemoError as error:
        console.print(f"loadwise demo failed: {error}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        console.print("interrupted; all processes of the demo have ended")
        raise typer.Exit(130) from None
