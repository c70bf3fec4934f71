"""``python -m benchmarks.coordinator.large_requests``: how long one large request keeps another client waiting.

The coordinator runs as a program. One connection sends a request of 4 MB that names one-letter groups or topics, as
many as it has room for. Meanwhile another connection sends a heartbeat as soon as the one before is answered.
"""

from __future__ import annotations

import argparse
import socket
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.coordinator.brokers import Served, ours
from loadwise.protocol.encoding import varint

WAIT_S = 600
_NAME = b"\x02a"
_OF_GROUPS = (b"", _NAME, b"\x00\x00")
"""What stands before the elements, one element, and what stands behind; before and behind the tagged fields."""
REQUESTS = {
    "ConsumerGroupDescribe v0": (69, 0, *_OF_GROUPS),
    "DeleteGroups v2": (42, 2, b"", _NAME, b"\x00"),
    "DescribeGroups v5": (15, 5, *_OF_GROUPS),
    "DescribeProducers v0": (61, 0, b"", _NAME + b"\x01\x00", b"\x00"),
    "FindCoordinator v4": (10, 4, b"\x00", _NAME, b"\x00"),
    "LeaveGroup v4": (13, 4, _NAME, _NAME + b"\x00\x00", b"\x00"),
    "ListOffsets v6": (2, 6, bytes(5), _NAME + b"\x01\x00", b"\x00"),
    "Metadata v9": (3, 9, b"", _NAME + b"\x00", b"\x00\x00\x00\x00"),
    "OffsetFetch v8": (9, 8, b"", _NAME + b"\x01\x00", b"\x00\x00"),
    "ShareGroupDescribe v1": (77, 1, *_OF_GROUPS),
    "StreamsGroupDescribe v0": (89, 0, *_OF_GROUPS),
}
"""By name: API key, version, and the parts of the body."""


@dataclass
class Beats:
    """A client that sends a heartbeat again and again, and notes the longest wait for an answer."""

    address: tuple[str, int]
    longest_s: float = 0.0
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Until it is over; the member is unknown, and is told so."""
        body = struct.pack(">hhih", 12, 0, 1, -1) + b"\x00\x01g" + bytes(4) + b"\x00\x01m"
        with socket.create_connection(self.address, timeout=WAIT_S) as peer:
            while not self.over.is_set():
                start = time.perf_counter()
                peer.sendall(struct.pack(">i", len(body)) + body)
                _read(peer)
                self.longest_s = max(self.longest_s, time.perf_counter() - start)


def _read(peer: socket.socket) -> int | None:
    """The bytes of the next answer; None if the peer hung up."""
    size: int | None = None
    got = 0
    head = b""
    while size is None or got < size + 4:
        try:
            data = peer.recv(2**20)
        except ConnectionResetError:
            return None
        if not data:
            return None
        got += len(data)
        if size is None:
            head += data
            size = int(struct.unpack_from(">i", head)[0]) if len(head) >= 4 else None
    return size


def frame(name: str, megabytes: float) -> tuple[bytes, int]:
    """A request, and how many elements it has."""
    key, version, before, element, behind = REQUESTS[name]
    number = int(megabytes * 1_000_000) // len(element)
    body = struct.pack(">hhih", key, version, 7, -1) + b"\x00" + before + varint(number + 1) + element * number + behind
    return struct.pack(">i", len(body)) + body, number


def peak_mib(served: Served) -> float:
    """The most memory that the coordinator has held."""
    lines = Path(f"/proc/{served.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def attack(served: Served, name: str, megabytes: float) -> None:
    """Send one large request, and print what it does to the other client."""
    host, _, port = served.bootstrap.rpartition(":")
    beats = Beats((host, int(port)))
    beating = threading.Thread(target=beats.run)
    beating.start()
    data, number = frame(name, megabytes)
    start = time.perf_counter()
    try:
        with socket.create_connection(beats.address, timeout=WAIT_S) as peer:
            peer.sendall(data)
            size = _read(peer)
    finally:
        beats.over.set()
        beating.join()
    took_s = time.perf_counter() - start
    answer = "hung up" if size is None else f"{size / 1e6:.1f} MB"
    print(
        f"{name:<26}{number:>10,} elements: answer {answer:>9} in {took_s:6.1f} s, "
        f"longest wait of the other {beats.longest_s * 1000:8,.0f} ms, peak {peak_mib(served):6,.0f} MiB",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, each request at a coordinator of its own, and print a line for each."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--megabytes", type=float, default=4.0, help="size of the request")
    options.add_argument("--only", choices=sorted(REQUESTS), help="one of the requests")
    chosen = options.parse_args(arguments)
    for name in [chosen.only] if chosen.only else REQUESTS:
        with ours(uvloop=False) as served:
            attack(served, name, chosen.megabytes)


if __name__ == "__main__":
    main()
