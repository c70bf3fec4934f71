"""Three brokers in a process of their own, whose partitions are led unevenly, and one of which can be slowed."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection

from loadwise.coordinator import Coordinator

TOPIC = "benchmark"
LEADS = {1: 50, 2: 25, 3: 15}
"""How many of the 90 partitions each broker leads."""
SLOWED = 1


class Cluster:
    """The running brokers."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.address: str = pipe.recv()

    def slow(self, ms: int) -> None:
        """Delay each Produce request to one broker by so many milliseconds; 0: no longer."""
        self._pipe.send(ms)
        self._pipe.recv()


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """Run the brokers in a process that ends with this block."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    try:
        yield Cluster(ours)
    finally:
        ours.close()
        process.join()


def _serve(pipe: Connection) -> None:
    with Coordinator(brokers=len(LEADS)).in_thread() as coordinator:
        leaders = [broker for broker, count in LEADS.items() for _ in range(count)]
        coordinator.create_topic(TOPIC, len(leaders))
        for partition, leader in enumerate(leaders):
            coordinator.move_leader(TOPIC, partition, leader)
        pipe.send(coordinator.bootstrap_servers)
        with contextlib.suppress(EOFError):
            while True:
                ms = pipe.recv()
                coordinator.faults.clear()
                if ms:
                    coordinator.faults.delay("Produce", ms=ms, broker=SLOWED, times=None)
                pipe.send(None)
