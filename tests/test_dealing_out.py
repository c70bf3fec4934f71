"""How tests are dealt out to processes: tests/support/crashed_once.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from crashed_once import CrashedOnce

SUPPORT = Path(__file__).with_name("support")
SCHEDULER = """
    from crashed_once import CrashedOnce

    def pytest_xdist_make_scheduler(config, log):
        return CrashedOnce(config, log)
"""
TESTS = """
    import os
    import pytest

    @pytest.mark.parametrize("number", range(4))
    def test_number(number):
        with open("ran", "a") as ran:
            print(number, file=ran)
        if number == 1:
            os._exit(1)
"""


def test_a_test_that_ends_its_process_is_not_run_again(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(SCHEDULER)
    pytester.makepyfile(TESTS)
    done = pytester.runpytest_subprocess("-p", "xdist.plugin", "-n", "1", "--dist", "loadgroup")
    done.assert_outcomes(passed=3, failed=1)
    assert sorted((pytester.path / "ran").read_text().split()) == ["0", "1", "2", "3"]


def test_a_process_that_still_collects_gets_no_test(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(
        SCHEDULER
        + """
    import os
    import time
    from pathlib import Path

    def wait_for(name):
        while not Path(name).exists():
            time.sleep(0.01)

    def pytest_collection_modifyitems():
        # gw0 and gw1 end; gw2 replaces the first, and runs a test before gw3 has collected them.
        worker = os.environ.get("PYTEST_XDIST_WORKER")
        if worker == "gw2":
            wait_for("gw3-collects")
        if worker == "gw3":
            Path("gw3-collects").touch()
            wait_for("gw2-ran")
    """
    )
    pytester.makepyfile(
        """
        import os
        from pathlib import Path

        import pytest

        @pytest.mark.parametrize("number", range(12))
        def test_number(number):
            worker = os.environ["PYTEST_XDIST_WORKER"]
            if worker in ("gw0", "gw1"):
                os._exit(1)
            Path(f"{worker}-ran").touch()
        """
    )
    done = pytester.runpytest_subprocess("-p", "xdist.plugin", "-n", "2", "--dist", "loadgroup")
    done.assert_outcomes(passed=10, failed=2)


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("tests/spark_source/test_stream.py::test_a[1]", "spark"),
        ("tests/coordinator/storage/test_restarts_same_as_kafka.py::test_a[1]", "test_restarts_same_as_kafka.py"),
        ("tests/tools/test_planned_by_balance.py::test_a[1]", "tools"),
        ("tests/tools/test_tools_same_as_kafka.py::test_a[1]", "tools"),
        ("tests/test_readme.py::test_a[1]", "tests/test_readme.py::test_a[1]"),
    ],
)
def test_tests_that_share_a_jvm_are_dealt_out_together(test: str, group: str) -> None:
    scheduler = CrashedOnce.__new__(CrashedOnce)  # it would ask for what pytest-xdist has in a run
    assert scheduler._split_scope(test).endswith(group)
