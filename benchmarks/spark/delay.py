"""A proxy before a broker that makes the network slow: each byte arrives some milliseconds after it was sent.

``python -m benchmarks.spark.delay MS``: a process of its own, so that it takes no turns of Python from those who are
measured. It prints the port that it listens on, and reads the broker's address from its standard input.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHUNK = 1 << 20
IN_FLIGHT = 64
"""Chunks that are on their way in one direction: beyond these the sender waits, as with a full window of TCP."""


class DelayProxy:
    """The proxy's process, for the one that measures."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.address = f"127.0.0.1:{process.stdout.readline().strip()}"

    def lead_to(self, broker: str) -> None:
        """Let it connect to this broker from now on."""
        assert self._process.stdin is not None
        print(broker, file=self._process.stdin, flush=True)


@contextmanager
def delay_proxy(delay_ms: float) -> Iterator[DelayProxy]:
    """Run a proxy that adds ``delay_ms`` to each round trip."""
    command = [sys.executable, "-m", "benchmarks.spark.delay", str(delay_ms / 2)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield DelayProxy(process)
        finally:
            process.kill()


async def serve(delay_s: float) -> None:
    """Take connections until the process ends; the first line of standard input is where they lead to."""
    loop = asyncio.get_running_loop()
    broker = loop.run_in_executor(None, sys.stdin.readline)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = (await broker).strip().rpartition(":")
        await asyncio.sleep(2 * delay_s)  # TCP's own handshake
        with suppress(OSError):
            to_broker, from_broker = await asyncio.open_connection(host, int(port), limit=CHUNK)
            await asyncio.gather(pass_on(reader, from_broker, delay_s), pass_on(to_broker, writer, delay_s))

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=CHUNK)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    """Write each piece after the delay, in order."""
    loop = asyncio.get_running_loop()
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(IN_FLIGHT)

    async def deliver() -> None:
        while True:
            due, data = await under_way.get()
            await asyncio.sleep(due - loop.time())
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()

    delivering = asyncio.create_task(deliver())
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            await under_way.put((loop.time() + delay_s, data))
    await under_way.put((loop.time() + delay_s, b""))
    with suppress(OSError):
        await delivering


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]) / 1000))
