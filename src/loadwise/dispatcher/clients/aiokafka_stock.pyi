# The public methods of aiokafka's AIOKafkaProducer, which has no types of its own.

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self

from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.structs import OffsetAndMetadata, RecordMetadata, TopicPartition

class AIOKafkaProducer:
    _message_accumulator: Any
    _metadata: Any

    def __init__(self, **configs: Any) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None: ...
    async def abort_transaction(self) -> None: ...
    async def begin_transaction(self) -> None: ...
    async def commit_transaction(self) -> None: ...
    def create_batch(self) -> BatchBuilder: ...
    async def flush(self) -> None: ...
    async def partitions_for(self, topic: str) -> set[int]: ...
    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes]] | None = None,
    ) -> asyncio.Future[RecordMetadata]: ...
    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes]] | None = None,
    ) -> RecordMetadata: ...
    async def send_batch(
        self, batch: BatchBuilder, topic: str, *, partition: int
    ) -> asyncio.Future[RecordMetadata]: ...
    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int | tuple[int, str] | OffsetAndMetadata], group_id: str
    ) -> None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    def transaction(self) -> AbstractAsyncContextManager[Any]: ...
    def _partition(
        self,
        topic: str,
        partition: int | None,
        key: object,
        value: object,
        serialized_key: bytes | None,
        serialized_value: bytes | None,
    ) -> int: ...
