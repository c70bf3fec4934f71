"""``python -m benchmarks.coordinator.large_requests``: how long one large request keeps another client waiting.

The coordinator runs as a program. One connection sends a request of 4 MB for each API and each array that it has: as
many one-letter names, or other elements, as there is room for. Meanwhile another connection sends a heartbeat as soon
as the one before is answered. The table has its longest wait, the processor time of the longest turn of the
coordinator's loop, and the most memory that the coordinator held. On a busy machine a wait is longer than the turn.
"""

from __future__ import annotations

import argparse
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from large_frames import arrays, large_frame

from benchmarks.coordinator.brokers import WITHOUT_UVLOOP, Served, ours
from benchmarks.processes import resident_mib
from loadwise.coordinator.routing.services import services
from loadwise.protocol.messages import Api, served

WAIT_S = 600
GOAL_MS = 50
GOAL_MIB = 200
_TIMED = """
import os, struct, time
from asyncio.base_events import BaseEventLoop
turns, run_once = os.open({turns!r}, os.O_RDWR), BaseEventLoop._run_once
def timed(self):
    start = time.thread_time()
    run_once(self)
    taken = time.thread_time() - start
    if taken > struct.unpack("<d", os.pread(turns, 8, 0))[0]:
        os.pwrite(turns, struct.pack("<d", taken), 0)
BaseEventLoop._run_once = timed
"""
"""Notes the processor time of the longest turn of the loop in a file."""
_BEHIND = struct.pack(">ihhih", 10, 18, 0, 8, -1)
"""An ApiVersions request, sent behind the large one: a Produce may have no answer of its own."""
APIS = {api.name: api for api in served(service.api for service in services().values()).values()}


def _read(peer: socket.socket) -> tuple[int, int] | None:
    """The size and the correlation id of the next answer; None if the peer hung up."""
    try:
        head = peer.recv(8, socket.MSG_WAITALL)
        if len(head) < 8:
            return None
        size, correlation_id = struct.unpack(">ii", head)
        left = size - 4
        while left:
            data = peer.recv(min(left, 2**20))
            if not data:
                return None
            left -= len(data)
    except ConnectionResetError:
        return None
    return size, correlation_id


def frame(api: Api, path: Sequence[str], megabytes: float) -> tuple[bytes, int]:
    """A request with its size, and how many elements the array has."""
    few, more = (len(large_frame(api, api.max_version, path, number)) for number in (10_000, 20_000))
    number = int(megabytes * 1_000_000 * 10_000 / (more - few))
    data = large_frame(api, api.max_version, path, number)
    return struct.pack(">i", len(data)) + data, number


def beat(served: Served, over: threading.Event, waits_s: list[float]) -> None:
    """Send a heartbeat as soon as the one before is answered, and note how long that took. The member is unknown."""
    body = struct.pack(">hhih", 12, 0, 1, -1) + b"\x00\x01g" + bytes(4) + b"\x00\x01m"
    with socket.create_connection(served.address, timeout=WAIT_S) as peer:
        while not over.is_set():
            start = time.perf_counter()
            peer.sendall(struct.pack(">i", len(body)) + body)
            _read(peer)
            waits_s.append(time.perf_counter() - start)


def attack(served: Served, turns: Path, api: Api, path: Sequence[str], megabytes: float) -> bool:
    """Send one large request, and print what it does to the other client; whether that is within the goals."""
    over, waits_s = threading.Event(), [0.0]
    data, number = frame(api, path, megabytes)
    beating = threading.Thread(target=beat, args=(served, over, waits_s))
    beating.start()
    with turns.open("r+b") as file:  # in place: the coordinator reads it
        file.write(bytes(8))  # the start of the program does not count
    start = time.perf_counter()
    try:
        with socket.create_connection(served.address, timeout=WAIT_S) as peer:
            peer.sendall(data + _BEHIND)
            found = _read(peer)
    finally:
        over.set()
        beating.join()
    took_s = time.perf_counter() - start
    answer = "hung up" if found is None else "none" if found[1] == 8 else f"{found[0] / 1e6:.1f} MB"
    turn_ms = struct.unpack("<d", turns.read_bytes())[0] * 1000
    peak_mib = resident_mib(served.pid, peak=True)
    is_within = turn_ms <= GOAL_MS and peak_mib <= GOAL_MIB
    print(
        f"| {api.name} v{api.max_version} | {'.'.join(path)} | {number:,} | {answer} | {took_s:.1f} "
        f"| {max(waits_s) * 1000:,.0f} | {turn_ms:,.0f} | {peak_mib:,.0f} | {'yes' if is_within else '**no**'} |",
        flush=True,
    )
    return bool(is_within)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, each request at a coordinator of its own, and print a row for each."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--megabytes", type=float, default=4.0, help="size of the request")
    options.add_argument("--only", choices=sorted(APIS), nargs="*", default=(), help="some of the APIs")
    chosen = options.parse_args(arguments)
    print("| API | array | elements | answer | s | longest wait, ms | longest turn, ms of CPU | peak, MiB | within |")
    print("|---|---|---|---|---|---|---|---|---|")
    missed = 0
    requests = [
        (api, path)
        for name, api in sorted(APIS.items())
        for path in arrays(api, api.max_version)
        if not chosen.only or name in chosen.only
    ]
    for api, path in requests:
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(8))
            file.flush()
            with ours(uvloop=False, code=_TIMED.format(turns=file.name) + WITHOUT_UVLOOP) as served_now:
                missed += not attack(served_now, Path(file.name), api, path, chosen.megabytes)
    print(f"\n{missed} beyond {GOAL_MS} ms of CPU in a turn, or {GOAL_MIB} MiB")


if __name__ == "__main__":
    main()
