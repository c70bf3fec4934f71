"""`ThreadedCoordinator`, a coordinator on its own thread for synchronous code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from loadwise.coordinator.control import ClockControl, GroupControl
from loadwise.coordinator.errors import NotRunningError
from loadwise.coordinator.faults.rules import Faults
from loadwise.coordinator.keeper import Snapshot
from loadwise.coordinator.loops import run

if TYPE_CHECKING:
    from loadwise.coordinator.embedded import Coordinator

_THREAD_TIMEOUT_S = 30

T = TypeVar("T")


class ThreadedCoordinator:
    """A `Coordinator` on its own thread, which runs inside ``with``."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self.groups = GroupControl(coordinator._running, self._on_its_thread)
        """Shows groups, removes members, ends sessions and forces rebalances."""
        self.clock = ClockControl(coordinator._clock, coordinator._running, self._on_its_thread)
        """Freezes, steps and resumes the coordinator's clock."""

    @property
    def bootstrap_servers(self) -> str:
        """Return the addresses of all brokers; see `Coordinator.bootstrap_servers`."""
        return self._coordinator.bootstrap_servers

    @property
    def http_url(self) -> str:
        """Return the URL of the HTTP API; see `Coordinator.http_url`."""
        return self._coordinator.http_url

    @property
    def http_token(self) -> str:
        """Return the token that HTTP requests must send."""
        return self._coordinator.http_token

    @property
    def faults(self) -> Faults:
        """Return the faults that clients get; they may be used from any thread."""
        return self._coordinator.faults

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic. Raises `BadTopicError` if it exists already or is not valid."""
        self._on_its_thread(lambda: self._coordinator.create_topic(name, partitions))

    def move_leader(self, topic: str, partition: int, to: int | None = None) -> None:
        """Make another replica the leader of a partition; see `Coordinator.move_leader`."""
        self._on_its_thread(lambda: self._coordinator.move_leader(topic, partition, to))

    def move_coordinator(self, group_id: str, to: int | None = None) -> None:
        """Make another broker the coordinator of a group; see `Coordinator.move_coordinator`."""
        self._on_its_thread(lambda: self._coordinator.move_coordinator(group_id, to))

    def move_transaction_coordinator(self, transactional_id: str, to: int | None = None) -> None:
        """Make another broker the transaction coordinator; see `Coordinator.move_transaction_coordinator`."""
        self._on_its_thread(lambda: self._coordinator.move_transaction_coordinator(transactional_id, to))

    def drop_leader(self, topic: str, partition: int) -> None:
        """Leave a partition without a leader; see `Coordinator.drop_leader`."""
        self._on_its_thread(lambda: self._coordinator.drop_leader(topic, partition))

    def set_isr(self, topic: str, partition: int, brokers: Sequence[int]) -> None:
        """Set the in-sync replicas of a partition; see `Coordinator.set_isr`."""
        self._on_its_thread(lambda: self._coordinator.set_isr(topic, partition, brokers))

    def stop_broker(self, broker: int) -> None:
        """Stop a broker as if it was killed; see `Coordinator.stop_broker`."""
        self._on_its_thread(lambda: self._coordinator.stop_broker(broker))

    def start_broker(self, broker: int) -> None:
        """Start a stopped broker; see `Coordinator.start_broker`."""
        self._on_its_thread(lambda: self._coordinator.start_broker(broker))

    def snapshot(self) -> Snapshot:
        """Return the cluster's current state; see `Coordinator.snapshot`."""
        return self._on_its_thread(self._coordinator.snapshot)

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot; see `Coordinator.restore`."""
        self._on_its_thread(lambda: self._coordinator.restore(snapshot))

    def start(self) -> None:
        """Start the thread and wait until the coordinator listens. Raises its start's errors."""
        if self._thread is not None:
            raise RuntimeError("the coordinator is already running: stop it before you start it again")
        started: Future[None] = Future()
        thread = threading.Thread(target=self._run, args=(started,), name="loadwise-coordinator", daemon=True)
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
            raise NotRunningError("the coordinator does not run: use `with` first")

        async def act() -> T:
            return action()

        return asyncio.run_coroutine_threadsafe(act(), self._loop).result(_THREAD_TIMEOUT_S)

    def _run(self, started: Future[None]) -> None:
        try:
            # Closing uvloop waits for a peer that is silent in its TLS handshake, until the handshake times out.
            (run if self._coordinator._tls is None else asyncio.run)(self._serve(started))
        except BaseException as failure:
            if started.done():
                raise
            started.set_exception(failure)  # start() raises it

    async def _serve(self, started: Future[None]) -> None:
        async with self._coordinator:
            self._loop = asyncio.get_running_loop()
            self._stopping = asyncio.Event()
            started.set_result(None)
            await self._stopping.wait()
