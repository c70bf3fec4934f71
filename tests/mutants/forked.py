"""Run pytest in forks of this process that see other source than the files have."""

from __future__ import annotations

import ast
import builtins
import gc
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import CodeType

import pytest

Rewrite = Callable[[ast.Module], ast.Module]
# Imported once, before the forks. Other modules are imported in each fork: they may import what is rewritten.
WARM = [
    *("aiokafka", "confluent_kafka", "cramjam", "hypothesis.stateful", "networkx", "numpy", "pyspark.sql", "re2"),
    *(f"kafka.{name}" for name in ("admin", "consumer", "producer", "protocol.consumer", "protocol.metadata")),
]
# pytest's import hook for assertions would come before ours: as a pytest plugin, loadwise is rewritten by it too.
OPTIONS = ("-q", "-p", "no:cacheprovider", "--assert=plain", "-m", "not kafka and not long and not spark")
MEMORY_BYTES = 4 << 30
START_S, TIMES = 10.0, 10.0
"""A test may take so many seconds, and so many times as long as it took before."""
ROUTE = "__reached__"


@dataclass(frozen=True)
class Took:
    """How long a test took."""

    wall_s: float
    cpu_s: float
    """Of this process: on a busy machine it says more."""


@dataclass(frozen=True)
class Work:
    """What one fork does."""

    files: Sequence[str]
    """Of tests."""
    rewrites: Mapping[Path, Rewrite] = field(default_factory=dict)
    tests: Mapping[str, Took] | None = None
    """The ids of the tests to run, in this order; all of the files without it."""
    stop: bool = True
    """At the first test that fails, where ``tests`` are given."""


@dataclass
class Outcome:
    """What a fork has sent, and how it ended."""

    exit_code: int | None = None
    """None if it ran out of time."""
    failed: list[str] = field(default_factory=list)
    reached: dict[str, tuple[Took, list[int]]] = field(default_factory=dict)
    """Of each test that passed the numbers of the statements that it ran; of "" those of imports."""


@dataclass(frozen=True)
class _Running:
    process: multiprocessing.context.ForkProcess
    receiver: Connection
    outcome: Outcome
    until: float


def run_all(works: Iterable[Work], processes: int, logs: Path, ended: Callable[[int, Outcome], None]) -> None:
    """Run works in so many processes; ``ended`` gets each one's number and outcome, in the order in which they end."""
    logs.mkdir(parents=True, exist_ok=True)
    for name in WARM:
        try:
            importlib.import_module(name)
        except ImportError:  # an optional dependency: its tests skip
            continue
    gc.freeze()  # pytest collects garbage several times: not what all forks share
    running: dict[int, _Running] = {}
    try:
        _keep_busy(enumerate(works), running, processes, logs, ended)
    finally:
        for one in running.values():
            _end(one.process)


def _keep_busy(
    waiting: Iterator[tuple[int, Work]],
    running: dict[int, _Running],
    processes: int,
    logs: Path,
    ended: Callable[[int, Outcome], None],
) -> None:
    while True:
        while len(running) < processes and (following := next(waiting, None)) is not None:
            running[following[0]] = _start(following[1], logs / f"{following[0]}.log")
        if not running:
            return
        deadline = min(one.until for one in running.values())
        wait([one.receiver for one in running.values()], max(0.0, deadline - time.monotonic()))
        for number, one in list(running.items()):
            if _received(one.receiver, one.outcome) or time.monotonic() > one.until:
                _end(one.process)
                one.receiver.close()
                del running[number]
                ended(number, one.outcome)


def _start(work: Work, log: Path) -> _Running:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, sender, log))
    process.start()
    sender.close()
    return _Running(process, receiver, Outcome(), time.monotonic() + _allowed_s(work))


def _allowed_s(work: Work) -> float:
    return 1200.0 if work.tests is None else 60 + START_S + TIMES * sum(took.wall_s for took in work.tests.values())


def _received(receiver: Connection, outcome: Outcome) -> bool:
    """Take what a fork has sent; return whether it has ended."""
    try:
        while receiver.poll():
            match receiver.recv():
                case ("failed", str(test)):
                    outcome.failed.append(test)
                case ("reached", str(test), Took() as took, list(statements)):
                    outcome.reached[test] = (took, statements)
                case ("exit", int(code)):
                    outcome.exit_code = code
                    return True
    except EOFError:  # pytest-timeout ends the process
        outcome.exit_code = outcome.exit_code or 1
        return True
    return False


def _end(process: multiprocessing.context.ForkProcess) -> None:
    """End a fork with the processes that its tests have started."""
    if process.pid is not None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.join()


def _child(work: Work, sender: Connection, log: Path) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    with log.open("wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    finder = _Finder(work.rewrites)
    sys.meta_path.insert(0, finder)
    code = int(
        pytest.main(
            [*OPTIONS, *(["-x"] if work.tests is not None and work.stop else []), *work.files],
            plugins=[_Plugin(work, sender, finder)],
        )
    )
    sender.send(("exit", code))
    sys.stdout.flush()
    os._exit(code)


class _Finder(MetaPathFinder):
    """Finds the modules to rewrite, behind links too."""

    def __init__(self, rewrites: Mapping[Path, Rewrite]) -> None:
        self._rewrites = rewrites

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        spec = PathFinder.find_spec(fullname, path)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return None
        rewrite = self._rewrites.get(Path(spec.origin).resolve())
        if rewrite is None:
            return None
        spec.loader = _Loader(fullname, spec.origin, rewrite)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, rewrite: Rewrite) -> None:
        super().__init__(fullname, path)
        self._rewrite = rewrite

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        tree = self._rewrite(ast.parse(self.get_data(self.path)))
        return compile(tree, self.path, "exec", dont_inherit=True)


class _Plugin:
    """Runs the tests in the order of the work, and sends what it sees."""

    def __init__(self, work: Work, sender: Connection, finder: _Finder) -> None:
        self._tests, self._sender, self._finder = work.tests, sender, finder
        self._statements: set[int] = set()
        self._passed = False
        setattr(builtins, ROUTE, self._statements.add)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Find modules before other plugins do, and stop hypothesis at the first failing example."""
        from hypothesis import Phase, settings

        sys.meta_path.insert(0, self._finder)
        settings.register_profile(
            "mutants", settings(), phases=[Phase.explicit, Phase.generate], report_multiple_bugs=False
        )
        settings.load_profile("mutants")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._tests is not None:
            found = {item.nodeid: item for item in items}
            items[:] = [found[test] for test in self._tests if test in found]
            for item in items:
                item.add_marker(pytest.mark.timeout(START_S + TIMES * self._tests[item.nodeid].wall_s, method="thread"))
        self._send("", Took(0, 0))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._statements.clear()
        self._passed = False
        began, cpu_began = time.monotonic(), time.process_time()
        result = yield
        if self._passed:
            self._send(item.nodeid, Took(time.monotonic() - began, time.process_time() - cpu_began))
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._sender.send(("failed", report.nodeid))
        self._passed = (self._passed or report.when == "call") and report.passed

    def _send(self, test: str, took: Took) -> None:
        if self._tests is None:
            self._sender.send(("reached", test, took, sorted(self._statements)))
