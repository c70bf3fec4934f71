"""`ThreadedCoordinator`, a coordinator on its own thread for synchronous code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Self, TypeVar

from loadwise.coordinator.embedding.control import ClusterControl
from loadwise.coordinator.embedding.embedded import Embedded
from loadwise.coordinator.embedding.loops import run
from loadwise.coordinator.errors import NotRunningError

_THREAD_TIMEOUT_S = 30

T = TypeVar("T")


class ThreadedCoordinator(ClusterControl):
    """A `Coordinator` on its own thread, which runs inside ``with``."""

    def __init__(self, embedded: Embedded) -> None:
        super().__init__(embedded, self._on_its_thread)
        self._embedded = embedded
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread and wait until the coordinator listens. Raises its start's errors."""
        if self._thread is not None:
            raise RuntimeError("the coordinator is already running: stop it before you start it again")
        started: Future[None] = Future()
        thread = threading.Thread(target=self._run_thread, args=(started,), name="loadwise-coordinator", daemon=True)
        thread.start()
        try:
            started.result()
        except BaseException:
            thread.join()
            raise
        self._thread = thread

    def stop(self) -> None:
        """Stop the coordinator and wait for its thread to end."""
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = self._loop = self._stopping = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _on_its_thread(self, action: Callable[[], T]) -> T:
        if self._loop is None:
            raise NotRunningError("the coordinator is not running: use `with` first")

        async def act() -> T:
            return action()

        return asyncio.run_coroutine_threadsafe(act(), self._loop).result(_THREAD_TIMEOUT_S)

    def _run_thread(self, started: Future[None]) -> None:
        try:
            # Closing uvloop waits for a peer that is silent in its TLS handshake, until the handshake times out.
            (run if self._embedded.tls is None else asyncio.run)(self._serve(started))
        except BaseException as failure:
            if started.done():
                raise
            started.set_exception(failure)  # start() raises it

    async def _serve(self, started: Future[None]) -> None:
        await self._embedded.start()
        try:
            self._loop = asyncio.get_running_loop()
            self._stopping = asyncio.Event()
            started.set_result(None)
            await self._stopping.wait()
        finally:
            await self._embedded.stop()
