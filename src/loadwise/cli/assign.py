"""``loadwise assign``: JSON lines in, assignments out; the what-if tool, and how other programs compare assignors."""

from __future__ import annotations

import gc
import json
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

from loadwise.assignor.case import Case, load_json
from loadwise.assignor.errors import AssignorError

if TYPE_CHECKING:
    import argparse

    from loadwise.cli.parser import Parser

DESCRIPTION = """Compute assignments: one JSON object per line on standard input, one per line on standard output.

A line that cannot be answered gets {"error": ...}, and the command continues with the next one.
`python -m pydoc loadwise.assignor.case` describes the format."""
EPILOG = """example:
  echo '{"strategy": "weighted", "topics": {"t": {"partitions": 3}}, "weights": {"t": [9, 5, 4]},
         "members": [{"id": "a", "topics": ["t"]}, {"id": "b", "topics": ["t"]}]}' |
    tr -d '\\n' | loadwise assign"""


def add_options(parser: Parser) -> None:
    """It has none."""


def run(_: argparse.Namespace) -> int:
    """Answer every line of standard input."""
    gc.disable()  # a line makes up to millions of objects, and none of them form cycles
    for line in sys.stdin.buffer:
        if line.strip():
            sys.stdout.write(json.dumps(answer(line), separators=(",", ":")) + "\n")
            sys.stdout.flush()
            gc.collect(1)
    return 0


def answer(line: bytes) -> dict[str, Any]:
    """Answer one line: ``id`` as given, ``members`` with the partitions of each, ``elapsed_ms``; or ``error``."""
    try:
        given = load_json(line.decode("utf-8-sig"))
    except AssignorError as error:
        return {"error": str(error)}
    except UnicodeDecodeError as error:
        return {"error": f"not UTF-8: byte {error.object[error.start]:#04x} at position {error.start} of the line"}
    except (ValueError, RecursionError) as error:
        return {"error": f"not JSON: {error}"}
    try:
        case = Case.parse(given)
        start = time.perf_counter()
        members = case.answer().pairs()
        elapsed_ms = (time.perf_counter() - start) * 1000
    except AssignorError as error:
        return {**_id(given), "error": str(error)}
    except Exception as error:  # noqa: BLE001 (the next line is owed its answer whatever is wrong with us at this one)
        traceback.print_exc()
        return {**_id(given), "error": f"a defect in loadwise; the traceback is on standard error: {error!r}"}
    return {**_id(given), "members": members, "elapsed_ms": round(elapsed_ms, 3)}


def _id(given: object) -> dict[str, Any]:
    return {"id": given["id"]} if isinstance(given, dict) and "id" in given else {}
