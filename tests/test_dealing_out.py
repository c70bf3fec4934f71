"""How tests are dealt out to processes: tests/support/crashed_once.py."""

from __future__ import annotations

from pathlib import Path

import pytest

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
