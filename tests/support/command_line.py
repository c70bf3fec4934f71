"""The command ``loadwise`` called in this process: what it prints, and its exit status."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from loadwise.cli import main


@dataclass(frozen=True, slots=True)
class Called:
    """How a call ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """All that was printed."""
        return self.stdout + self.stderr


def invoke(arguments: Sequence[str], input: str | bytes = "") -> Called:  # noqa: A002  (as subprocess.run calls it)
    """Call the command. An exception that is not SystemExit is a defect, and raised."""
    given = input.encode() if isinstance(input, str) else input
    out, errors = io.StringIO(), io.StringIO()
    with (
        redirect_stdout(out),
        redirect_stderr(errors),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")),
    ):
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Called(code, out.getvalue(), errors.getvalue())
