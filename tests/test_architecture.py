"""What the documents tell about files: every path in them exists, and the list of folders is complete."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("assignor", "benchmarks", "coordinator", "protocol", "spark_source", "src/loadwise")
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
# Where a path may begin, beside the repository itself: readers know the package by its parts.
STARTS = ("", "src/loadwise", "assignor", "coordinator", "spark_source")


def test_every_folder_is_in_the_list() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    listed = set(re.findall(r"\[`[^`]+`\]\(\.\./([^)]*)/\)", text[text.index("## Folders") :]))
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for folder in PRODUCT
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "__init__.py"
    }
    assert folders == listed, "docs/architecture.md names each folder with modules, and no other"


def test_every_path_in_the_documents_exists() -> None:
    """A path is what stands in backticks and has a slash and a Python file's ending, or a slash at its end."""
    for document in DOCUMENTS:
        if document.name == "CHANGELOG.md":
            continue  # it tells what was there in earlier versions
        for path in re.findall(r"`([\w./-]+/[\w.-]*\.py|[\w.-][\w./-]*/)`", document.read_text()):
            assert any((ROOT / start / path).exists() for start in STARTS), (
                f"{document.name} names {path}: no such path"
            )


def test_every_module_that_the_documents_name_exists() -> None:
    """A name without a folder, such as `admission.py`, is that of some module."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    modules = {Path(path).name for path in listed.split()}
    if not modules:
        pytest.skip("this is no checkout of git")
    for document in DOCUMENTS:
        if document.name != "CHANGELOG.md":
            for name in re.findall(r"`(\w+\.py)`", document.read_text()):
                assert name in modules | {"conftest.py", "kafka.py", "protocol.py"}, f"{document.name} names {name}"
