"""The commands of ``loadwise`` and what they are called with, for typer."""

from __future__ import annotations

from typing import Annotated

import typer

import loadwise
from loadwise.cli import assign, compare, coordinator, demo, loads, watch

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="markdown", context_settings={"help_option_names": ["-h", "--help"]}
)
app.command("demo")(demo.demo)
app.command("assign")(assign.assign)
app.command("compare")(compare.compare)
app.command("watch")(watch.watch)
app.command("loads")(loads.loads)


@app.command(
    "coordinator",
    help=coordinator.DESCRIPTION,
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def _coordinator(context: typer.Context) -> None:
    coordinator.main(context.args)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"loadwise {loadwise.__version__}")
        raise typer.Exit


@app.callback(epilog="New here? `loadwise demo` shows what it is good for, in a few minutes, on this machine.")
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option("-V", "--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Load-aware partition assignment for Kafka consumers.

    The assignors are plugged into your consumers from Python (`loadwise.assignor.clients`); these commands show,
    serve and answer what goes with them.
    """
