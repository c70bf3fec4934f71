"""Carries out the steps of a program against one broker, and tells what failed."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from catalogue import Program, Step
from installers import SOURCES

_BETWEEN_TRIES_S = 0.5
_TO_END_S = 10


def failure(program: Program, broker: str, environment: Mapping[str, str]) -> str | None:
    """Run a program against a broker; what went wrong, with what it printed, or None if nothing did."""
    with tempfile.TemporaryDirectory(prefix="program-") as folder:
        variables = {
            **environment,
            "BROKER": broker,
            "NAME": f"{re.sub('[^a-z0-9]+', '-', program.name.lower()).strip('-')}-{uuid4().hex[:6]}",
            "PORT": str(_free_port()),
            "SOURCES": str(SOURCES),
            "PYTHONPATH": str(SOURCES),
        }
        running: list[subprocess.Popen[bytes]] = []
        try:
            for number, step in enumerate(program.steps):
                problem = _carry_out(step, Path(folder), number, variables, running)
                if problem is not None:
                    return problem
        finally:
            for process in reversed(running):
                _end(process)
    return None


def _carry_out(
    step: Step, folder: Path, number: int, variables: Mapping[str, str], running: list[subprocess.Popen[bytes]]
) -> str | None:
    deadline = time.monotonic() + step.within_s
    while True:
        log = folder / f"step-{number}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-e", "-o", "pipefail", "-c", step.run],
                cwd=folder,
                env=dict(variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            problem = _watch(process, step, log, deadline)
        except BaseException:
            _end(process)
            raise
        if step.background and problem is None:
            running.append(process)
            return None
        _end(process)
        if problem is None or not step.again or time.monotonic() > deadline:
            return None if problem is None else f"{step.run}\n{problem}\n{log.read_text(errors='replace')[-4000:]}"
        time.sleep(_BETWEEN_TRIES_S)


def _watch(process: subprocess.Popen[bytes], step: Step, log: Path, deadline: float) -> str | None:
    """Wait until the step has done what it must, or cannot any more; what went wrong."""
    while True:
        status = process.poll()
        text = log.read_text(errors="replace")
        missing = [each for each in step.sees if not re.search(each, text, re.MULTILINE)]
        if step.background and not missing and status is None:
            return None
        if status is not None:
            if status != 0:
                return f"ended with {status}"
            return f"did not print: {', '.join(missing)}" if missing else None
        if time.monotonic() > deadline:
            return f"took longer than {step.within_s} s; did not print: {', '.join(missing) or '(nothing is missing)'}"
        time.sleep(0.05)  # between two looks


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing behind of a step and what it started: they are one process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(_TO_END_S)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port
