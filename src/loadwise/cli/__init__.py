"""The command ``loadwise``: one module a command, imported only when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

import loadwise
from loadwise.cli.parser import Parser, one_of
from loadwise.nearest import did_you_mean

COMMANDS = {
    "demo": "Drain a real, skewed stream with each assignor, and compare them.",
    "compare": "Compare the assignors on one group.",
    "balance": "Plan leader changes and replica moves that even out the load of brokers.",
    "watch": "Watch the lag, rates and utilisation of a running group.",
    "live": "Switch a group's rebalances for the load off and on.",
    "steer": "Steer a consumer group by its load, for clients in any language.",
    "coordinator": "Start a Kafka coordinator for tests and demos.",
    "loads": "Measure the data in topics by partition and hour, and find hot keys.",
    "assign": "Compute assignments: JSON lines in, JSON lines out.",
    "replay": "Repeat the decisions of a leader from its saved history.",
}
SHELLS = ("bash", "zsh", "fish")
_EPILOG = """`loadwise COMMAND --help` describes a command.

New here? `loadwise demo` shows in a few minutes what loadwise does.

Completion of commands, options and values: eval "$(loadwise --completion bash)\""""
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and exit with its status: 0, 1 for a failure, 2 for wrong usage, 130 for Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = _run(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)


def parser_of(command: str) -> Parser:
    """The parser of one command."""
    module = module_of(command)
    parser = Parser(f"loadwise {command}", getattr(module, "DESCRIPTION", COMMANDS[command]), module.EPILOG)
    module.add_options(parser)
    return parser


def module_of(command: str) -> ModuleType:
    """The module of one command: ``EPILOG``, ``add_options(parser)`` and ``run(options)``, which returns the status."""
    return importlib.import_module(f"loadwise.cli.{command}")


def top_parser() -> Parser:
    """The parser of ``loadwise`` itself: its options, and the list of commands as its help."""
    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name:{width}}  {summary}" for name, summary in COMMANDS.items())
    parser = Parser(
        "loadwise",
        f"Load-aware partition assignment for Kafka consumers.\n\ncommands:\n{listed}",
        _EPILOG,
        usage="loadwise [OPTIONS] COMMAND ...",
    )
    parser.add_argument("-V", "--version", action="version", version=f"loadwise {loadwise.__version__}")
    parser.add_argument(
        "--completion", type=one_of(SHELLS), choices=SHELLS, help="print the completion script for a shell"
    )
    return parser


def _run(words: Sequence[str]) -> int:
    if words and not words[0].startswith("-"):
        command, *arguments = words
        if command == "__complete":
            from loadwise.cli.completion import complete

            print(*complete(arguments), sep="\n")  # noqa: T201
            return 0
        if command not in COMMANDS:
            top_parser().error(f"there is no command {command!r}{did_you_mean(command, COMMANDS)}")
        return int(module_of(command).run(parser_of(command).parse(arguments)))
    parser = top_parser()
    options = parser.parse(words)
    if options.completion is not None:
        from loadwise.cli.completion import script

        sys.stdout.write(script(options.completion))
        return 0
    parser.print_help()
    return 2
