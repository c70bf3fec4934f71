"""A process of the demo, seen from the demo: started, listened to, stopped, and never left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from loadwise.demo.errors import ChildDiedError, DemoError

_QUOTED_LINES = 15


class Child:
    """A Python module in a process of its own, tied to us by its standard input (see `loadwise.demo.lifeline`)."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        """Use `child`, which also ends the process."""
        self.name = name
        self._process = process
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._last: deque[str] = deque(maxlen=_QUOTED_LINES)
        # Read at once: a child must not stall on a full pipe.
        self._reading = asyncio.gather(self._read_stdout(), self._read_stderr())

    @property
    def pid(self) -> int:
        """The process id; also that of the process group that all its own children belong to."""
        return self._process.pid

    @property
    def last_words(self) -> str:
        """The last lines that it wrote to its standard error, indented, each after a line break; empty if none."""
        return "".join(f"\n  {line}" for line in self._last)

    def kill(self) -> None:
        """Kill the process at once, so that it can neither commit nor leave its group."""
        self._process.kill()

    async def lines(self) -> AsyncIterator[str]:
        """Yield what the process writes to its standard output, line by line, until it ends."""
        while (line := await self._lines.get()) is not None:
            yield line

    async def order(self, text: str) -> None:
        """Write a line to the process. Raises `ChildDiedError` if it does not listen any more."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{text}\n".encode())
            await self._process.stdin.drain()
        except ConnectionError:
            raise await self.died() from None

    async def died(self) -> ChildDiedError:
        """Wait for the end of the process and return the error that describes it."""
        status = await self._process.wait()
        await self._reading
        how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
        return ChildDiedError(
            f"{self.name} (process {self.pid}) {how}; the last it wrote:{self.last_words or ' nothing'}"
        )

    async def finished(self) -> None:
        """Wait for a process that ends by itself. Raises `ChildDiedError` if its status is not 0."""
        if await self._process.wait() != 0:
            raise await self.died()

    async def close(self, grace_s: float = 6.0) -> None:
        """Cut the lifeline, wait for the process and its own children, and kill what is left after ``grace_s``."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(grace_s):
                # The pipes end with the last process that holds them: a JVM that Python started counts too.
                await asyncio.shield(self._reading)
        except TimeoutError:
            pass  # what follows ends it
        finally:
            # Reached by a second Ctrl-C too, which must not leave anything behind either.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        await self._process.wait()
        await self._reading

    async def _read_stdout(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self._lines.put_nowait(line.decode().rstrip("\n"))
        self._lines.put_nowait(None)

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            self._last.append(line.decode(errors="replace").rstrip())


@contextlib.asynccontextmanager
async def children(commands: Mapping[str, Sequence[str]]) -> AsyncIterator[list[Child]]:
    """Run ``python -m`` with the arguments of each command, by name, for as long as the context lasts."""
    running: list[Child] = []
    try:
        for name, arguments in commands.items():
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # the folder that the demo runs in is not searched for modules: it may have a kafka.py
                "-m",
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=2**20,
                start_new_session=True,  # Ctrl-C reaches us alone; we end the others in order
            )
            running.append(Child(name, process))
        yield running
    finally:
        await asyncio.gather(*(child.close() for child in running))


@contextlib.asynccontextmanager
async def listening(reports: Iterable[Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Take in the reports of children for as long as the context lasts. Raises the first `DemoError` of one."""
    try:
        async with asyncio.TaskGroup() as tasks:
            listeners = [tasks.create_task(each) for each in reports]
            yield
            for listener in listeners:
                listener.cancel()
    except ExceptionGroup as errors:
        # The first to fail tells why; the others only saw it happen.
        raise next((error for error in errors.exceptions if isinstance(error, DemoError)), errors) from None


@contextlib.asynccontextmanager
async def child(name: str, *arguments: str) -> AsyncIterator[Child]:
    """Run one command, as `children` does."""
    async with children({name: arguments}) as (only,):
        yield only
