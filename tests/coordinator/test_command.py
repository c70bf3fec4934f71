"""``loadwise coordinator`` as a program."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys

import pytest
from kafka import KafkaConsumer
from topics import WAIT_S
from typer.testing import CliRunner

from loadwise.cli import app


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
            host, port = ready[1].split(":")
            with socket.create_connection((host, int(port))) as still_connected:
                process.send_signal(stop)
                assert process.wait(WAIT_S) == 0
                assert still_connected.recv(1) == b""
            assert process.stdout.read() == ""
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--listen", "nowhere"], "is no HOST:PORT"),
        (["--listen", "127.0.0.1:99999"], "is no HOST:PORT"),
        (["--topic", "flights"], "is no NAME:PARTITIONS"),
        (["--topic", "flights:0"], "at least 1"),
        (["--listen", "0.0.0.0:0"], "--allow-remote"),
    ],
)
def test_it_refuses_what_it_cannot_do(arguments: list[str], complaint: str) -> None:
    result = CliRunner().invoke(app, ["coordinator", *arguments])
    assert result.exit_code not in {0, None}
    assert isinstance(result.exception, SystemExit), "a message, not a traceback"
    assert complaint in " ".join(result.stderr.split())
