"""How pytest-xdist deals tests out: one process has Spark, long files come early, and no test ends two processes."""

from __future__ import annotations

from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.workermanage import WorkerController

SPARK_SESSION = "tests of one Spark session"
"""In place of a file: the tests that share a Spark session. A second process would start a JVM of its own."""

WITH_A_SESSION = tuple(
    f"tests/spark_source/test_{name}.py"
    for name in (
        "beside_the_connector",
        "checkpoints",
        "connect",
        "connector_options",
        "loads",
        "member_query",
        "query",
        "scripts",
        "stream",
    )
)

EARLY = (
    SPARK_SESSION,
    "tests/spark_source/test_local_cluster.py",
    "tests/coordinator/groups/service/test_soak.py",
    "tests/coordinator/test_load_of_consumers.py",
    "tests/demo/test_loadwise_demo.py",
    "tests/demo/test_second_act.py",
    "tests/assignor/clients/test_examples.py",
    "tests/benchmarks/test_coordinator_benchmark.py",
    "tests/benchmarks/test_live_benchmark.py",
    "tests/coordinator/storage/test_kills.py",
    "tests/pytest_plugin/test_pytest_plugin.py",
    # In the tier against Apache Kafka; some start a Kafka of their own.
    "tests/spark_source/test_member_kills.py",
    "tests/spark_source/test_kills.py",
    "tests/interop/test_rolling_upgrade.py",
    "tests/interop/test_java_streams.py",
    "tests/coordinator/test_restarts_same_as_kafka.py",
)
"""Files of few tests that take long: pytest-xdist begins with those that have many, and would be left with these."""


class CrashedOnce(LoadFileScheduling):
    """``--dist loadfile``, where a test that ends its process is not run again by the process that replaces it.

    Without this, pytest-xdist gives the whole rest of the file to the next process, the test included, and a test that
    hangs takes its timeout nine times.
    """

    def _split_scope(self, nodeid: str) -> str:
        """What a test is dealt out with: its file, or all that needs the Spark session."""
        file = super()._split_scope(nodeid)
        return SPARK_SESSION if file in WITH_A_SESSION else file

    def schedule(self) -> None:
        """Deal out the files with the most tests, then the long ones, then the others."""
        is_first = self.collection is None
        super().schedule()
        if is_first:
            for scope in reversed(EARLY):
                if scope in self.workqueue:
                    self.workqueue.move_to_end(scope, last=False)

    def remove_node(self, node: WorkerController) -> str | None:
        """Take a process out, and answer with the test that ended it, if one did."""
        files = self.assigned_work[node]
        tests = {test: file for file in files.values() for test, is_over in file.items() if not is_over}
        if not tests:
            return super().remove_node(node)
        crashed, file = next(iter(tests.items()))
        file[crashed] = True
        del self.assigned_work[node]
        # A file without any test left would be waited for without end.
        self.workqueue.update({path: file for path, file in files.items() if not all(file.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed
