"""The examples run as they stand, on both brokers."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import patience
import pytest
from topics import WAIT_S, fill, make_topic

from loadwise.assignor.algorithms import ALGORITHMS

EXAMPLES = Path(__file__).parents[3] / "examples"
RECORDS = (10, 2, 2, 2, 2, 2)


@pytest.fixture
def filled(broker, topic_name):
    """A topic of six partitions, half of its records in the first."""
    make_topic(broker, topic_name, len(RECORDS))
    fill(broker, topic_name, RECORDS)
    return topic_name


def run(script, *arguments):
    command = [sys.executable, patience.__file__, EXAMPLES / script, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=2 * WAIT_S, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


NEEDS_QUIX = pytest.mark.skipif(
    importlib.util.find_spec("quixstreams") is None,
    reason="quixstreams takes confluent-kafka below 2.13 only: .ci/extras runs this in an environment of its own",
)
LED = r"20 records; led \d+ rebalances, 0 of them without load"
LED_ONCE = "20 records; led 1 rebalances, 0 of them without load"
"""It led its group, by an assignor of ours, and one that knew the load."""


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("consumer_kafka_python.py", LED),
        ("consumer_aiokafka.py", LED),
        ("consumer_confluent_kafka.py", LED),
        ("consumer_confluent_kafka_aio.py", LED),
        ("consumer_of_brokers_assignor.py", r"20 records\n\Z"),  # and no line after it
        ("faststream_aiokafka.py", LED_ONCE),
        ("faststream_confluent.py", LED_ONCE),
        ("faust_worker.py", LED_ONCE),
        pytest.param("quix_streams.py", LED_ONCE, marks=NEEDS_QUIX),
    ],
)
def test_a_consumer(script, line, broker, filled, group_id):
    where = [filled, "--bootstrap-servers", broker, "--group", group_id]
    told = run(script, *where, "--seconds", str(WAIT_S), "--records", "20")
    assert all(f"('{filled}', {partition})" in told for partition in range(6))
    assert re.search(f"^{line}$", told, re.MULTILINE)


def test_ours_is_an_assignor_of_our_coordinators_side(coordinator, topic_name, group_id):
    make_topic(coordinator.bootstrap_servers, topic_name, len(RECORDS))
    fill(coordinator.bootstrap_servers, topic_name, RECORDS)
    where = [topic_name, "--bootstrap-servers", coordinator.bootstrap_servers, "--group", group_id]
    told = run("consumer_of_brokers_assignor.py", *where, "--assignor", "weighted", "--records", "20")
    assert told.splitlines()[-1] == "20 records"


def test_comparing_the_assignors_on_a_topic(broker, filled):
    lines = run("compare_assignors.py", filled, "--bootstrap-servers", broker, "--members", "2").splitlines()
    assert lines[0] == f"{filled}: 6 partitions, 20 in all, 2 members"
    rows = {line.split(":")[0].strip(): line for line in lines[1:]}
    assert list(rows) == list(ALGORITHMS)
    assert "max/mean 1.00" in rows["weighted"]
    assert rows["weighted"].split()[-2:] == ["10", "10"]


def test_comparing_the_assignors_on_made_up_loads():
    lines = run("compare_assignors.py").splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:]] == list(ALGORITHMS)
