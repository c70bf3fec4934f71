"""A coordinator as a process of its own, over a data directory: to be killed, and started again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class Program:
    """A coordinator as a process of its own, over a data directory."""

    def __init__(self, path: Path, *options: str, program: Sequence[str] = ("-m", "loadwise")) -> None:
        command = [sys.executable, *program, "coordinator", "--data-dir", str(path), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "ready at" in line, self.process.communicate()
        self.address = line.split()[-1]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()
