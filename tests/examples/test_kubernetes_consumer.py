"""The program of examples/kubernetes: its probes, and how it stops."""

from __future__ import annotations

import runpy
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from kafka import KafkaProducer
from prometheus_client import CollectorRegistry
from topics import WAIT_S, until

from loadwise import Coordinator

PROGRAM = Path(__file__).resolve().parents[2] / "examples/kubernetes/consumer.py"


def _status(address: str) -> int:
    try:
        with urllib.request.urlopen(address, timeout=WAIT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_pod_is_ready_alive_and_leaves_the_group_on_sigterm() -> None:
    with Coordinator({"clicks": 2}).in_thread() as kafka:
        servers = ["--bootstrap-servers", kafka.bootstrap_servers]
        command = [sys.executable, str(PROGRAM), "clicks", *servers, "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as pod:
            assert pod.stdout is not None
            address = f"http://127.0.0.1:{pod.stdout.readline().rsplit(maxsplit=1)[-1]}"
            until(lambda: _status(f"{address}/ready") == 200)
            assert _status(f"{address}/live") == 200
            with urllib.request.urlopen(f"{address}/metrics", timeout=WAIT_S) as metrics:
                assert b'loadwise_leads{group="billing"}' in metrics.read()
            with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
                producer.send("clicks", b"work").get(timeout=WAIT_S)
            assert pod.stdout.readline() == "b'work'\n"
            pod.send_signal(signal.SIGTERM)
            assert pod.wait(WAIT_S) == 0
        assert not kafka.groups.get("billing").members


def test_the_probes_fail_before_the_first_partition_and_when_the_loop_hangs() -> None:
    probes = runpy.run_path(str(PROGRAM))["Probes"](CollectorRegistry())

    def status(path: str) -> str:
        seen: list[str] = []
        probes({"PATH_INFO": path, "REQUEST_METHOD": "GET"}, lambda status, _: seen.append(status[:3]))
        return seen[0]

    assert (status("/ready"), status("/live"), status("/metrics")) == ("503", "200", "200")
    probes.had_partitions = True
    probes.polled_at = time.monotonic() - 301
    assert (status("/ready"), status("/live")) == ("200", "503")
