"""The fixtures that pytest finds in loadwise, as a user's test suite sees them: pytest in a process of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A user's test suite with loadwise's plugin, and no more plugins than it names: they take seconds to import."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_PLUGINS", raising=False)
    pytester.makeini("[pytest]\naddopts = -p loadwise.pytest_plugin -p no:cacheprovider\n")
    return pytester


def test_the_examples_of_the_guide_pass(suite: pytest.Pytester) -> None:
    text = "".join((DOCS / page).read_text() for page in ("testing.md", "testing-logins.md"))
    example, filled, with_tls = re.findall(r"```python\n((?:(?!```).)*?def test_.*?)```", text, re.DOTALL)
    suite.makepyfile(test_example=example, test_filled=filled, test_with_tls=with_tls)
    asynchronous = ("-p", "pytest_asyncio.plugin", "-o", "asyncio_mode=auto")
    suite.runpytest_subprocess(*asynchronous).assert_outcomes(passed=5)


def test_the_suite_of_the_page_on_ci_passes_in_parallel(suite: pytest.Pytester) -> None:
    [example] = re.findall(r"```python\n(.*?)```", (DOCS / "guides" / "ci.md").read_text(), re.DOTALL)
    suite.makepyfile(example)
    suite.runpytest_subprocess("-p", "xdist.plugin", "-n", "2").assert_outcomes(passed=5)


def test_the_jobs_of_the_page_on_ci_are_yaml_that_runs_pytest() -> None:
    jobs = re.findall(r"```yaml\n(.*?)```", (DOCS / "guides" / "ci.md").read_text(), re.DOTALL)
    github, gitlab = map(yaml.safe_load, jobs)
    steps = [step.get("run", "") for step in github["jobs"]["test"]["steps"]]
    for commands in (steps, gitlab["test"]["script"]):
        assert sum("pytest -n auto" in each for each in commands) == 1
        assert sum("loadwise[coordinator]" in each for each in commands) == 1


def test_a_filled_coordinator_is_the_same_for_each_test(suite: pytest.Pytester) -> None:
    suite.makepyfile("""
        import pytest

        @pytest.fixture(scope="session")
        def kafka_fill():
            return lambda coordinator: coordinator.create_topic("orders", 2)

        @pytest.mark.parametrize("attempt", range(3))
        def test_it(kafka_filled_coordinator, kafka_coordinator_session, attempt):
            kafka_filled_coordinator.create_topic("mine")
            assert not kafka_filled_coordinator.faults.pending
            assert not kafka_filled_coordinator.clock.is_frozen
            kafka_filled_coordinator.faults.drop("Fetch")
            kafka_filled_coordinator.clock.freeze()
            with pytest.raises(ValueError, match="already exists"):
                kafka_filled_coordinator.create_topic("orders")
            kafka_coordinator_session.create_topic(f"orders-{attempt}")
    """)
    suite.runpytest_subprocess().assert_outcomes(passed=3)


def test_loadwise_is_not_parsed_again_to_rewrite_its_asserts(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytest would do so where it finds the plugin by itself; two threads that parse crash Python 3.11.7."""
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    suite.makeini("[pytest]\naddopts = -p no:cacheprovider\n")
    suite.makepyfile("""
        import sys
        from importlib.machinery import SourceFileLoader

        def test_it(kafka_coordinator):
            assert type(sys.modules["loadwise.pytest_plugin"].__loader__) is not SourceFileLoader
            ours = [each for name, each in sys.modules.items() if name.startswith("loadwise.coordinator")]
            assert {type(each.__loader__) for each in ours} == {SourceFileLoader}
    """)
    suite.runpytest_subprocess().assert_outcomes(passed=1)


def test_under_xdist_every_worker_has_its_own_and_nothing_is_left_behind(suite: pytest.Pytester) -> None:
    suite.makeconftest("""
        import threading
        import pytest

        def pytest_unconfigure(config):
            left = [each.name for each in threading.enumerate() if each.name.startswith("loadwise")]
            assert not left, left
    """)
    suite.makepyfile("""
        import pathlib
        import socket
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_one(number, kafka_coordinator_session, kafka_topic_session, kafka_coordinator, kafka_topic, worker_id):
            shared, own = kafka_coordinator_session, kafka_coordinator
            assert shared.bootstrap_servers != own.bootstrap_servers
            assert kafka_topic_session(2) != kafka_topic_session(2)
            assert kafka_topic().startswith("test-under-xdist")
            host, port = shared.bootstrap_servers.split(":")
            socket.create_connection((host, int(port))).close()
            with pathlib.Path("addresses").open("a") as file:
                file.write(f"{worker_id} {shared.bootstrap_servers} {own.bootstrap_servers}\\n")
    """)
    result = suite.runpytest_subprocess("-p", "xdist.plugin", "-n", "2")
    result.assert_outcomes(passed=4)
    assert "left" not in result.stderr.str()
    rows = [line.split() for line in (suite.path / "addresses").read_text().splitlines()]
    workers = {worker for worker, _, _ in rows}
    assert len({(worker, shared) for worker, shared, _ in rows}) == len(workers) == len({row[1] for row in rows})


def test_whoever_does_not_use_it_does_not_wait_for_it(suite: pytest.Pytester) -> None:
    suite.makepyfile("""
        import sys

        def test_nothing_is_imported():
            assert "loadwise.pytest_plugin" in sys.modules
            loaded = {"loadwise.coordinator", "loadwise.protocol", "kafka", "numpy", "asyncio"} & set(sys.modules)
            assert not loaded, loaded
    """)
    suite.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_suite_can_give_the_coordinator_other_arguments(suite: pytest.Pytester) -> None:
    suite.makeconftest("""
        import pytest

        @pytest.fixture(scope="session")
        def kafka_coordinator_options():
            return {"brokers": 3, "topics": {"orders": 6}}
    """)
    suite.makepyfile("""
        import pytest
        from loadwise.coordinator import BadTopicError

        def test_it(kafka_coordinator):
            assert kafka_coordinator.bootstrap_servers.count(",") == 2
            with pytest.raises(BadTopicError, match="already exists"):
                kafka_coordinator.create_topic("orders")

        def test_no_other_test_left_anything(kafka_coordinator, kafka_topic):
            assert kafka_topic(3)
            assert kafka_coordinator.groups.all() == []
            kafka_coordinator.create_topic("mine")

        def test_not_even_a_topic(kafka_coordinator):
            kafka_coordinator.create_topic("mine")
    """)
    suite.runpytest_subprocess().assert_outcomes(passed=3)
