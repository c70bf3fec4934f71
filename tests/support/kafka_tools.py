"""Kafka's command-line programs, all in one process of Java: starting one takes longer than they do."""

from __future__ import annotations

import queue
import subprocess
import threading
from pathlib import Path

from topics import WAIT_S

_CLASSES = dict(
    line.split()
    for line in Path(Path(__file__).parents[1], "programs", "java_classes.txt").read_text().splitlines()
    if line
)
_END = "\x04"
_INPUT = "\x03"


class Tools:
    """Runs the programs by the names of their scripts."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)

    def run(self, script: str, *arguments: str, read: str | None = None) -> list[str]:
        """What a program writes, and then the number that it ends with; ``read`` is what it is given to read."""
        assert self._process.stdin is not None
        words = [_CLASSES[script], *arguments]
        if read is not None:
            words += [_INPUT, *read.split("\n")]
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        lines = []
        while (line := self._lines.get(timeout=2 * WAIT_S).rstrip("\n")) != _END:
            lines.append(line.rstrip())
        return [line for line in lines if line]

    def close(self) -> None:
        self._process.kill()
        self._reader.join()
        with self._process:
            pass  # closes its pipes, and waits for its end
