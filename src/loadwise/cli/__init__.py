"""The command ``loadwise``: one module a command, imported only when it is called."""

from __future__ import annotations

import typer

from loadwise.cli import assign, coordinator, demo

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
    help="Load-aware partition assignment for Kafka consumers.",
)
app.command("assign")(assign.assign)
app.command("demo")(demo.demo)
app.command("coordinator")(coordinator.coordinator)


def main() -> None:
    """Run the command line."""
    app()
