"""What the documents let a reader type or follow: links and their anchors, commands and their options, imports."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from loadwise.cli import COMMANDS, parser_of

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "docs"
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(page for page in SITE.rglob("*.md") if not {"lab", "generated"} & set(page.relative_to(SITE).parts)),
]
IMPORT = re.compile(r"^ *from (loadwise[\w.]*) import (\([^)]*\)|[^#\n]*)", re.MULTILINE)
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
VARIABLE = re.compile(r"^([A-Z_]+) +\?= ", re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """GitHub's anchors of its headings."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(program: str) -> Iterator[tuple[str, list[str]]]:
    """Every command of a program, in a block of shell or in backticks: its document, and the words behind it."""
    for document in DOCUMENTS:
        if document.name == "CHANGELOG.md":
            continue  # it tells of earlier versions
        text = document.read_text()
        blocks = re.findall(r"^```(?:sh|bash|shell)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        for command in [*lines, *re.findall(r"`([^`]+)`", prose)]:
            if found := re.match(rf"(?:[A-Z_]+=\S+ )*{re.escape(program)} (.*)", command, re.DOTALL):
                yield document.name, shlex.split(found[1], comments=True)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_within_the_documents_leads_somewhere(document: Path) -> None:
    for path, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", document.read_text()):
        target = document.parent / path if path else document
        if "generated" in target.parts:
            continue  # `make docs` writes and checks these
        assert target.exists(), f"{document.name} links to {path}, which is not there"
        if anchor:
            assert anchor in anchors(target), f"{document.name} links to {path}#{anchor}: no such heading"


def test_every_target_of_make_is_there_and_takes_what_it_is_given() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(TARGET.findall(makefile))
    taken = {*VARIABLE.findall(makefile), *re.findall(r"\$\(([A-Z_]+)\)", makefile)}
    found = list(commands("make"))
    assert found
    for document, words in found:
        given = {word.partition("=")[0] for word in words if "=" in word}
        wanted = {word for word in words if "=" not in word and word != "&&"}
        assert wanted <= targets, f"{document}: make {wanted - targets}"
        assert given <= taken, f"{document}: {given - taken} mean nothing to the Makefile"


def test_every_module_that_is_to_be_run_is_there() -> None:
    found = list(commands("python -m"))
    assert found
    for document, (module, *_) in found:
        assert find_spec(module), f"{document}: python -m {module}"


def test_every_command_of_loadwise_has_the_options_that_it_is_shown_with() -> None:
    options = {
        name: {option for each in parser_of(name).options for option in each.option_strings} for name in COMMANDS
    }
    shown = [
        (document, words)
        for document, words in commands("loadwise")
        if words[0] in options or any(word.startswith("--") for word in words)
    ]
    assert {words[0] for _, words in shown} == set(options), "each command is in the documents"
    for document, (command, *words) in shown:
        for word in words:
            if word.startswith("--"):
                assert word.partition("=")[0] in options[command], f"{document}: loadwise {command} {word}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_examples_import_of_loadwise_is_there(document: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL):
        for found, names in IMPORT.findall(block):
            module = importlib.import_module(found)
            for name in names.strip("()").split(","):
                if name := name.partition(" as ")[0].strip():
                    assert hasattr(module, name), f"{document.name} imports {name} from {found}"


def test_troubleshooting_has_every_warning_and_error() -> None:
    page = re.sub(r"`", "", (SITE / "troubleshooting.md").read_text())
    quoted = [row.split("|")[1].strip() for row in page.splitlines() if row.startswith("|")]
    # In a process of its own: Python 3.11 fails to parse while something else formats a traceback.
    show = "import generated, json; print(json.dumps([each.text for each in generated.messages()]))"
    printed = subprocess.run([sys.executable, "-c", show], cwd=SITE / "_ext", capture_output=True, check=True).stdout
    found = json.loads(printed)
    assert len(found) > 50
    told = [part.strip() for cell in quoted for part in cell.split(",")] + quoted
    missing = [text for text in found if text != "%s" and not any(len(t) > 3 and t in text for t in told)]
    assert not missing, "a row of docs/troubleshooting.md quotes some words of each message"


SITE_PAGES = [page for page in DOCUMENTS if page.is_relative_to(SITE)]


def test_no_two_pages_of_the_site_have_one_title() -> None:
    # What an earlier `make docs` has generated may be older than this state.
    pages = [page for page in SITE.rglob("*.md") if not {"lab", "generated"} & {*page.relative_to(SITE).parts}]
    titles = [page.read_text().partition("\n")[0] for page in pages]
    assert sorted(titles) == sorted(set(titles))


@pytest.mark.parametrize("page", SITE_PAGES, ids=lambda path: path.name)
def test_a_page_has_at_most_1800_words(page: Path) -> None:
    assert len(page.read_text().split()) <= 1800, "split it"


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda path: path.name)
def test_the_text_of_a_link_is_no_file_name_of_a_page(page: Path) -> None:
    links = re.findall(r"\[([^\]]*\.md)\]\(", page.read_text())
    assert not links, "say what the page is called"


NARROW = [page for page in DOCUMENTS if page.parent != ROOT or page.name == "README.md"]


@pytest.mark.parametrize("page", NARROW, ids=lambda path: path.name)
def test_code_has_at_most_88_columns(page: Path) -> None:
    """So much is seen of a line beside the site's menu on a screen of 1,280 pixels."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    for line in (line for block in blocks for line in block.splitlines()):
        assert len(line) <= 88, f"{page.name}: {line}"
