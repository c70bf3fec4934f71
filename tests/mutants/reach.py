"""Which tests run which lines: measured for each file of tests, and kept as long as no source changes."""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple
from functools import partial
from pathlib import Path

from forked import ROUTE, Outcome, Took, Work, run_all

LINES = 10_000
"""More than a file has. The statement in line 7 of the file with number 3 has the number 30,007."""


class Reach:
    """Which tests of a checkout run which lines of some of its files."""

    def __init__(self, root: Path, files: Sequence[Path], test_files: Sequence[Path]) -> None:
        self._root, self._files, self._test_files = root, list(files), list(test_files)
        self._numbers = {path: number for number, path in enumerate(self._files)}
        self._took: dict[str, Took] = {}
        self._tests: dict[int, set[str]] = defaultdict(set)
        self._of_file: dict[int, set[str]] = defaultdict(set)
        self._at_import: set[int] = set()

    def measure(self, processes: int, cache: Path) -> None:
        """Run each file of tests that the cache lacks; keep what its tests reach."""
        kept = {path: cache / self._key / f"{_digest([path])}.json" for path in self._test_files}
        lacking = [path for path in self._test_files if not kept[path].exists()]
        rewrites = {path: partial(instrument, first=number * LINES) for path, number in self._numbers.items()}
        (cache / self._key).mkdir(parents=True, exist_ok=True)

        def ended(number: int, outcome: Outcome) -> None:
            path = lacking[number]
            if outcome.exit_code not in (0, 5):
                print(
                    f"{path.relative_to(self._root)}: exit code {outcome.exit_code}, failed: {outcome.failed}",
                    flush=True,
                )
            if outcome.exit_code in (0, 5) or outcome.failed:
                kept[path].write_text(
                    json.dumps({test: (astuple(took), lines) for test, (took, lines) in outcome.reached.items()})
                )

        if lacking:
            print(f"running {len(lacking)} of {len(kept)} files of tests to see what they reach", file=sys.stderr)
        works = [Work([str(path.relative_to(self._root))], rewrites) for path in lacking]
        run_all(works, processes, cache / "reach", ended)
        for path in self._test_files:
            if not kept[path].exists():
                raise SystemExit(f"{path} did not run to its end: {cache / 'reach'} has the output")
            self._read(json.loads(kept[path].read_text()), path)

    def of(self, path: Path, statement: int, *, in_function: bool) -> list[str]:
        """Return the ids of the tests that reach a statement.

        What runs once, at an import, is reached by all tests that reach the file or import it.
        """
        number = self._numbers[path]
        line = number * LINES + statement
        once = not in_function or line in self._at_import
        return sorted(self._tests[line] | (self._of_file[number] if once else set()))

    def took(self, test: str) -> Took:
        """Return how long a test took."""
        return self._took[test]

    def _read(self, reached: dict[str, tuple[tuple[float, float], list[int]]], test_file: Path) -> None:
        self._at_import.update(reached.pop("", ((0, 0), []))[1])
        names = _imported(test_file)
        imported = [number for path, number in self._numbers.items() if _name(path) in names]
        for test, (took, lines) in reached.items():
            self._took[test] = Took(*took)
            for line in lines:
                self._tests[line].add(test)
            for number in {*(line // LINES for line in lines), *imported}:
                self._of_file[number].add(test)

    @property
    def _key(self) -> str:
        """Of all sources but the tests themselves: what tests share is part of it, this tool is not."""
        folders = [each for each in self._root.iterdir() if each.is_dir() and not each.name.startswith(".")]
        sources = sorted(path for folder in folders for path in folder.rglob("*.py"))
        own = Path(__file__).parent
        shared = [path for path in sources if not path.name.startswith("test_") and path.parent != own]
        return _digest([*shared, *self._files])


def instrument(tree: ast.Module, first: int) -> ast.Module:
    """Have each statement of a function report its number when it runs."""
    _report(tree, first, in_function=False)
    return ast.fix_missing_locations(tree)


def _report(node: ast.AST, first: int, *, in_function: bool) -> None:
    inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in ast.iter_child_nodes(node):
        _report(child, first, in_function=inside)
    for name in ("body", "orelse", "finalbody") if inside else ():
        block = getattr(node, name, None)
        if isinstance(block, list):
            setattr(node, name, [each for statement in block for each in _reporting(statement, first)])


def _reporting(statement: ast.stmt, first: int) -> list[ast.stmt]:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return [statement]  # a docstring
    number = ast.Constant(first + statement.lineno)
    report = ast.Expr(ast.Call(ast.Name(ROUTE, ast.Load()), [number], []))
    return [ast.copy_location(report, statement), statement]


def _name(path: Path) -> str:
    return path.parent.name if path.stem == "__init__" else path.stem


def _imported(test_file: Path) -> set[str]:
    """Return the last names of what a file of tests imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(test_file.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.name.rpartition(".")[2] for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            names.add((node.module or "").rpartition(".")[2])
    return names


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
