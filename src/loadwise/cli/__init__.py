"""The command ``loadwise``: one module a command, imported only when it is called."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == ["coordinator"]:
        # Test suites start this one again and again, so it goes without what takes long to import: typer and rich.
        from loadwise.cli import coordinator

        coordinator.import_kafka_without_its_clients()
        coordinator.main(sys.argv[2:])
        return
    try:
        import rich  # noqa: F401 (the commands import it when they draw)

        from loadwise.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        from loadwise.installation import pip_install

        sys.exit(f"the command loadwise needs {error.name}, which is not installed; get it with: {pip_install('cli')}")
    app()
