"""What all commands share: how their options are read, refused and described."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

from loadwise.nearest import did_you_mean

Name = TypeVar("Name", bound=str)


class Parser(argparse.ArgumentParser):
    """A parser whose help is short, and whose refusals name the nearest option."""

    def __init__(self, prog: str, description: str, epilog: str, usage: str | None = None) -> None:
        super().__init__(
            prog=prog,
            usage=usage or f"{prog} [OPTIONS]",
            description=description,
            epilog=epilog,
            formatter_class=_Help,
            allow_abbrev=False,
        )

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the arguments. Exits with status 2 and one line where they are wrong."""
        for word in arguments:
            name = word.partition("=")[0]
            if word == "--":
                break
            if name.startswith("--") and " " not in name and name not in self._option_string_actions:
                self.error(f"there is no option {name}{did_you_mean(name, self._option_string_actions)}")
        return self.parse_args(arguments)

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 and one line."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")

    @property
    def options(self) -> Sequence[argparse.Action]:
        """All options and positional arguments."""
        return self._actions


def _folded(line: str, width: int) -> str:
    """A line in the width; the meaning in ``  name  meaning`` stays in its column, and an indented command as it is."""
    row = re.match(r"  \S+(?: \S+)* {2,}", line)
    if line.startswith("  ") and row is None:
        return line
    return textwrap.fill(line, width, subsequent_indent=" " * (row.end() if row else 0))


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Keep paragraphs and indented lines of a description; show a default only where it says something."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = []
        for paragraph in text.split("\n\n"):
            lines = paragraph.splitlines() if "\n  " in paragraph else [" ".join(paragraph.split())]
            paragraphs.append("\n".join(indent + _folded(line, width) for line in lines))
        return "\n\n".join(paragraphs)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_long_words=False, break_on_hyphens=False)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        says_nothing = action.default is None or action.default is False or action.default == []
        return action.help if says_nothing else super()._get_help_string(action)


def add_command_config(group: argparse._ArgumentGroup, when: str = "") -> None:
    """Add the option for how to connect; ``when`` it counts."""
    group.add_argument(
        "--command-config",
        type=Path,
        metavar="FILE",
        help=f"{when}how to connect: a properties file, as for the Kafka tools (security.protocol, sasl.*, ssl.*)",
    )


def one_of(names: Iterable[Name]) -> Callable[[str], Name]:
    """A type for argparse: one of these names. Give them as ``choices`` too, for completion."""
    known = {str(name): name for name in names}

    def chosen(text: str) -> Name:
        if text not in known:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(known)}{did_you_mean(text, known)}")
        return known[text]

    return chosen


def whole_number(*, least: int, most: int | None = None) -> Callable[[str], int]:
    """A type for argparse: a whole number within bounds."""
    bounds = f"of {least} or more" if most is None else f"from {least} to {most}"

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number {bounds}")
        return int(text)

    return number


def at_least(least: float) -> Callable[[str], float]:
    """A type for argparse: a number that is not below another."""

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of {least:g} or more")
        return value

    return number
