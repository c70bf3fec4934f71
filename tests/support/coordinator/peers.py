"""A Kafka client by hand, and requests that tests send with it."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import Any

from client_messages import client_request, client_response, request_bytes
from record_batches import batch
from topics import WAIT_S

from loadwise.coordinator import Coordinator


class Peer:
    """A client by hand: it sends bytes and reads frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, coordinator: Coordinator) -> Peer:
        return await cls.connect_to(coordinator.bootstrap_servers)

    @classmethod
    async def connect_to(cls, address: str) -> Peer:
        host, port = address.split(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    def send(self, request: Any, correlation_id: int = 7) -> None:
        self.writer.write(request_bytes(request, correlation_id, "peer", framed=True))

    async def frame(self) -> bytes:
        async with asyncio.timeout(WAIT_S):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def read(self, response: Any, version: int) -> Any:
        return response.decode(await self.frame(), version=version, header=True)

    async def ask(self, api: str, /, version: int, **values: Any) -> Any:
        return await self.exchange(client_request(api, version, **values))

    async def exchange(self, request: Any) -> Any:
        self.send(request)
        return await self.read(client_response(request), request.API_VERSION)

    async def is_hung_up_on(self) -> bool:
        async with asyncio.timeout(WAIT_S):
            try:
                return await self.reader.read() == b""
            except ConnectionError:
                return True

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


def beat() -> Any:
    return client_request("Heartbeat", 4, group_id="g", generation_id=1, member_id="m")


def fetch(max_wait_ms: int, min_bytes: int = 1, offset: int = 0) -> Any:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 10_000}
    return client_request(
        "Fetch", 11, max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=[{"topic": "t", "partitions": [partition]}]
    )


def produce(acks: int = 1) -> Any:
    data = {"index": 0, "records": batch([b"x"])}
    return client_request("Produce", 9, acks=acks, timeout_ms=1, topic_data=[{"name": "t", "partition_data": [data]}])


def join(group_id: str, member_id: str = "", session_timeout_ms: int = 60_000) -> Any:
    protocol = {"name": "range", "metadata": b""}
    return client_request(
        "JoinGroup",
        3,
        group_id=group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )


async def answers(peer: Peer) -> bool:
    reply = await peer.exchange(beat())
    return int(reply.error_code) == 25
