"""``loadwise coordinator`` as a program."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest
from kafka import KafkaConsumer


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_listens_and_stops_cleanly(stop: signal.Signals) -> None:
    command = [sys.executable, "-m", "loadwise", "coordinator", "--listen", "127.0.0.1:0", "--topic", "flights:36"]
    with subprocess.Popen([*command, "--topic", "other:1"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            ready = re.fullmatch(r"loadwise coordinator ready at (127\.0\.0\.1:\d+)\n", process.stdout.readline())
            assert ready is not None
            with KafkaConsumer(bootstrap_servers=ready[1]) as client:
                assert client.partitions_for_topic("flights") == set(range(36))
                assert client.topics() == {"flights", "other"}
            process.send_signal(stop)
            assert process.wait(10) == 0
            assert process.stdout.read() == ""
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--listen", "nowhere"], "is no HOST:PORT"),
        (["--topic", "flights"], "is no NAME:PARTITIONS"),
        (["--topic", "flights:0"], "at least 1"),
        (["--listen", "0.0.0.0:0"], "allow_remote"),
    ],
)
def test_it_refuses_what_it_cannot_do(arguments: list[str], complaint: str) -> None:
    command = [sys.executable, "-m", "loadwise", "coordinator", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode != 0
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr
