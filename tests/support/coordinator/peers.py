"""A Kafka client by hand, and requests that tests send with it."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import Any

from kafka.protocol.consumer import FetchRequest, HeartbeatRequest, HeartbeatResponse, JoinGroupRequest
from kafka.protocol.producer import ProduceRequest
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
        request.with_header(correlation_id, "peer")
        self.writer.write(bytes(request.encode(header=True, framed=True)))

    async def frame(self) -> bytes:
        async with asyncio.timeout(WAIT_S):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def read(self, response: Any, version: int) -> Any:
        return response.decode(await self.frame(), version=version, header=True)

    async def ask(self, request: Any, response: Any) -> Any:
        self.send(request)
        return await self.read(response, request.API_VERSION)

    async def is_hung_up_on(self) -> bool:
        async with asyncio.timeout(WAIT_S):
            try:
                return await self.reader.read() == b""
            except ConnectionResetError:
                return True

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionResetError):
            await self.writer.wait_closed()


def beat() -> Any:
    return HeartbeatRequest(version=4, group_id="g", generation_id=1, member_id="m", group_instance_id=None)


def fetch(max_wait_ms: int, min_bytes: int = 1, offset: int = 0) -> Any:
    topic = FetchRequest.FetchTopic
    partition = topic.FetchPartition(
        partition=0, current_leader_epoch=-1, fetch_offset=offset, log_start_offset=-1, partition_max_bytes=10_000
    )
    return FetchRequest(
        version=11,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        topics=[topic(topic="t", partitions=[partition])],
        forgotten_topics_data=[],
    )


def produce(acks: int = 1) -> Any:
    topic = ProduceRequest.TopicProduceData
    data = topic.PartitionProduceData(index=0, records=batch([b"x"]))
    return ProduceRequest(
        version=9, transactional_id=None, acks=acks, timeout_ms=1, topic_data=[topic(name="t", partition_data=[data])]
    )


def join(group_id: str, member_id: str = "", session_timeout_ms: int = 60_000) -> Any:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    return JoinGroupRequest(
        version=3,
        group_id=group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )


async def answers(peer: Peer) -> bool:
    reply = await peer.ask(beat(), HeartbeatResponse)
    return int(reply.error_code) == 25
