"""The Containerfile, as far as it can be tried without an engine: what it installs exists, what it runs starts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import kafka

ROOT = Path(__file__).resolve().parents[1]


def _instructions() -> dict[str, str]:
    lines = [line for line in (ROOT / "Containerfile").read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(maxsplit=1) for line in lines)


def test_it_installs_extras_that_there_are() -> None:
    (extras,) = re.findall(r"\[([a-z,-]+)\]", _instructions()["RUN"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])


def test_it_has_python_as_the_project_asks_for() -> None:
    (version,) = re.findall(r"python:(3\.\d+)", _instructions()["FROM"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]


def test_what_it_runs_starts_and_answers() -> None:
    program, *arguments = json.loads(_instructions()["ENTRYPOINT"]) + json.loads(_instructions()["CMD"])
    assert program == "loadwise"
    # A free port of loopback in place of the container's own.
    arguments[arguments.index("0.0.0.0:9092")] = "127.0.0.1:0"
    arguments[arguments.index("localhost:9092")] = "localhost:0"
    command = [sys.executable, "-m", "loadwise", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            with kafka.KafkaAdminClient(bootstrap_servers=address) as admin:
                (broker,) = admin.describe_cluster()["brokers"]
            assert f"{broker['host']}:{broker['port']}" == address
            assert address.startswith("localhost:")
        finally:
            process.terminate()
