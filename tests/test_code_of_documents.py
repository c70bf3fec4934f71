"""The documents' Python blocks run as they stand, but for those that are marked as fragments or are whole test modules.

``localhost:9092`` is a coordinator there, and port 8000 any free one. The README has a test of its own, which looks at
the output of its programs.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from topics import WAIT_S

from loadwise.coordinator import Coordinator

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"(<!-- fragment -->\n)?^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = {
    page: programs
    for page in sorted(DOCS.rglob("*.md"))
    if page.relative_to(DOCS).parts[0] not in {"lab", "architecture.md"}
    and (
        programs := [
            code for fragment, code in BLOCK.findall(page.read_text()) if not fragment and "def test_" not in code
        ]
    )
}
EACH_ALONE = """
import sys
for program in sys.stdin.read().split("\\0"):
    exec(compile(program, "a block", "exec"), {"__name__": "__main__"})
    print("ran", flush=True)
import os; os._exit(0)  # consumers that a reader would go on with are still open
"""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_program_of_a_page_runs(page: Path) -> None:
    with Coordinator({"flights": 4}).in_thread() as kafka:
        programs = "\0".join(PAGES[page]).replace("localhost:9092", kafka.bootstrap_servers).replace("(8000)", "(0)")
        done = subprocess.run(
            [sys.executable, "-c", EACH_ALONE],
            input=programs,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines().count("ran") == len(PAGES[page]), done.stderr


def test_the_contract_test_of_the_own_assignor_passes() -> None:
    runpy.run_path(str(DOCS.parent / "examples" / "own_assignor.py"))["test_the_contract"]()
