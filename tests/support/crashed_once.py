"""How pytest-xdist deals tests out: what is started once has one process, and no test ends two processes."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from xdist.scheduler.loadgroup import LoadGroupScheduling
from xdist.workermanage import WorkerController

ROOT = Path(__file__).parents[2]
USES_SPARK = re.compile(r"^(?:async )?def \w+\((?:[^()]*[ ,])?spark[,):]", re.MULTILINE)
"""A test or a fixture that asks for the fixture ``spark``."""
STARTS_KAFKA = re.compile(r"\b(?:kafka_from_jars|three_kafkas)\(")


@cache
def _groups() -> dict[str, str]:
    """The files whose tests share a Spark session or an Apache Kafka of their own, each with its group's name.

    In a second process these would start another JVM. Only the Kafkas of tests/conftest.py are started by each.
    """
    groups: dict[str, str] = {}
    for file in (ROOT / "tests").rglob("test_*.py"):
        name, text, conftest = file.relative_to(ROOT).as_posix(), file.read_text(), file.with_name("conftest.py")
        if USES_SPARK.search(text):
            groups[name] = "spark"
        elif STARTS_KAFKA.search(text) and 'scope="module"' in text:
            groups[name] = name
        elif conftest.exists() and STARTS_KAFKA.search(conftest.read_text()):
            groups[name] = file.parent.name
    return groups


class CrashedOnce(LoadGroupScheduling):
    """``--dist loadgroup``, where a test that ends its process is not run again by the process that replaces it.

    Without this, pytest-xdist gives the rest of its group to the next process, the test included, and a test that hangs
    takes its timeout again and again.
    """

    def _split_scope(self, nodeid: str) -> str:
        """What a test is dealt out with: those that share what is started once, or nothing else.

        The mark ``xdist_group`` has no effect with pytest 9.2: https://github.com/pytest-dev/pytest-xdist/issues/1386
        """
        return _groups().get(nodeid.partition("::")[0], nodeid)

    def schedule(self) -> None:
        """Deal out tests, two at least to each process: it does not begin one before it knows the next.

        pytest-xdist gives a process that replaces another one group only, and waits without end where that is a test.
        """
        super().schedule()
        if self.collection:
            for node in self.nodes:
                self._reschedule(node)

    def _reschedule(self, node: WorkerController) -> None:
        """Deal out to a process, unless it replaces another one and has not collected the tests yet.

        pytest-xdist fails with a KeyError there if two processes end within the time that it takes to collect.
        """
        if node in self.registered_collections:
            super()._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Take a process out, and return the test that ended it, if one did."""
        groups = self.assigned_work[node]
        running = [(test, group) for group in groups.values() for test, is_over in group.items() if not is_over]
        if not running:
            return super().remove_node(node)
        crashed, group = running[0]
        group[crashed] = True
        del self.assigned_work[node]
        # A group without any test left would be waited for without end.
        self.workqueue.update({name: group for name, group in groups.items() if not all(group.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed
