"""A task's broker connections: leaders and Fetch.

The connections are aiokafka's with its TLS, SASL, version handshake and request formats. A Fetch returns the bytes of
record batches; no object is created for a single record.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from aiokafka.conn import collect_hosts, create_conn
from aiokafka.errors import KafkaError as ClientError
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest

from loadwise.assignor.model import TopicPartition
from loadwise.protocol.error_codes import BROKER_ERRORS, ErrorCode
from loadwise.spark_source.errors import OptionError
from loadwise.spark_source.options.connection_config import ConnectionConfig, Tls

Address: TypeAlias = tuple[str, int]

CLOSE_S = 1.0
"""How long the connections may take to close."""

PASSING = BROKER_ERRORS | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LISTENER_NOT_FOUND,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_ID,
}
"""Errors that a retry, perhaps with another broker, may fix."""


class UnreachableError(Exception):
    """No answer; the message names the broker and the reason."""


class AnsweredError(Exception):
    """A broker's answer has an error."""

    def __init__(self, code: int) -> None:
        known = {int(each): each for each in ErrorCode}
        self.code = known.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
        name = self.code.name.replace("_", " ").lower()
        super().__init__(f"Kafka answers error {code}: {name}")


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer to a Fetch of one partition."""

    records: bytes
    """Record batches as stored in the log; the last one may be incomplete."""
    aborted: list[tuple[int, int]]
    """Producer id and first offset of their aborted transactions, with ``read_committed``."""


@dataclass(slots=True)
class Brokers:
    """The connections of one task at a time, all on one event loop."""

    config: ConnectionConfig
    tls: ssl.SSLContext | None
    topics: frozenset[str] = frozenset()
    """The topics of the task: the next metadata request covers all of them."""
    asked: str = ""
    """The broker whose answer is pending; empty without one."""
    _connections: dict[Address, Any] = field(default_factory=dict)
    _connecting: dict[Address, asyncio.Lock] = field(default_factory=dict)
    """The holder makes the connection; others wait for it."""
    _leaders: dict[TopicPartition, Address] = field(default_factory=dict)
    _learning: asyncio.Lock = field(default_factory=asyncio.Lock)
    """The holder requests the leaders; others wait for the answer, which mostly covers theirs."""

    async def leader(self, place: TopicPartition) -> Address:
        """Return the leader of a partition. Raises `UnreachableError` and `AnsweredError`."""
        known = self._leaders.get(place)
        if known is not None:
            return known
        async with self._learning:
            # Another range may have requested it meanwhile.
            return self._leaders.get(place) or await self._learn(place)

    async def fetch(
        self, address: Address, wanted: Sequence[tuple[TopicPartition, int, int]]
    ) -> list[Fetched | AnsweredError]:
        """Fetch from partitions that a broker leads, each from an offset with a size limit.

        The first partition with data returns at least one whole batch. The others return nothing if their next batch
        exceeds the limit. Raises `UnreachableError`, or `AnsweredError` for the whole request. After an error, the
        next request looks up the leader again.
        """
        try:
            answers = await self._fetch(address, wanted)
        except (UnreachableError, AnsweredError):
            for place, _, _ in wanted:
                self._leaders.pop(place, None)
            raise
        for (place, _, _), answer in zip(wanted, answers, strict=True):
            if isinstance(answer, AnsweredError):
                self._leaders.pop(place, None)
        return answers

    async def close(self) -> None:
        """Close all connections."""
        closing = [closed for connection in self._connections.values() if (closed := connection.close()) is not None]
        if closing:
            await asyncio.wait(closing, timeout=CLOSE_S)  # a dead peer does not answer the end of TLS

    async def _fetch(
        self, address: Address, wanted: Sequence[tuple[TopicPartition, int, int]]
    ) -> list[Fetched | AnsweredError]:
        config = self.config
        topics: dict[str, list[tuple[int, int, int]]] = {}
        for place, offset, most_bytes in wanted:
            topics.setdefault(place.topic, []).append((place.partition, offset, most_bytes))
        most_bytes = min(config.max_bytes, sum(size for _, _, size in wanted))
        request = FetchRequest(
            config.max_wait_ms, config.min_bytes, most_bytes, int(config.read_committed), list(topics.items())
        )
        answer = await self._ask(address, request)
        # Version 4 came with batches v2 and transactions, 7 with an error for all, 11 with a field before the records.
        version = answer.API_VERSION
        if version < 4:
            raise AnsweredError(ErrorCode.UNSUPPORTED_VERSION)
        if version >= 7 and answer.error_code:
            raise AnsweredError(answer.error_code)
        # Above a quota the broker sends nothing and reads again after the throttle time (``getThrottledResponse``).
        found: dict[TopicPartition, Fetched | AnsweredError] = {}
        for topic, partitions in answer.topics:
            for partition in partitions:
                number, error_code, *_, records = partition
                found[TopicPartition(topic, number)] = (
                    AnsweredError(error_code)
                    if error_code
                    else Fetched(records or b"", partition[-3 if version >= 11 else -2] or [])
                )
        return [found.get(place, Fetched(b"", [])) for place, _, _ in wanted]

    async def _learn(self, place: TopicPartition) -> Address:
        topics, self.topics = sorted({place.topic, *self.topics}), frozenset()
        answer = await self._ask_any(MetadataRequest(topics, allow_auto_topic_creation=False))
        hosts = {broker["node_id"]: (broker["host"], broker["port"]) for broker in answer["brokers"]}
        problem: int = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for topic in answer["topics"]:
            for partition in topic["partitions"]:
                there = TopicPartition(topic["topic"], partition["partition"])
                if there == place:
                    problem = ErrorCode.LEADER_NOT_AVAILABLE
                if partition["leader"] in hosts:
                    self._leaders[there] = hosts[partition["leader"]]
            if topic["topic"] == place.topic and topic["error_code"]:
                raise AnsweredError(topic["error_code"])
        if place not in self._leaders:
            raise AnsweredError(problem)
        return self._leaders[place]

    async def _ask_any(self, request: Any) -> dict[str, Any]:
        """Return the first broker's answer: connected brokers first, then all known ones."""
        known = [(host, port) for host, port, _ in collect_hosts(self.config.bootstrap_servers)]
        problem: UnreachableError | None = None
        for address in dict.fromkeys((*self._connections, *self._leaders.values(), *known)):
            try:
                answer: dict[str, Any] = (await self._ask(address, request)).to_object()
            except UnreachableError as unreachable:
                problem = unreachable
            else:
                return answer
        assert problem is not None, "there is at least one bootstrap server"
        raise problem

    async def _ask(self, address: Address, request: Any) -> Any:
        name = self.asked = f"{address[0]}:{address[1]}"
        connection = None
        try:
            async with self._connecting.setdefault(address, asyncio.Lock()):
                connection = self._connections.get(address)
                if connection is None or not connection.connected():
                    connection = self._connections[address] = await self._connected(address)
            answer = await connection.send(request)
        except NotImplementedError:  # aiokafka's, where it shares no version of the request with the broker
            raise AnsweredError(ErrorCode.UNSUPPORTED_VERSION) from None
        except (ClientError, OSError, TimeoutError) as problem:
            if connection is not None:
                connection.close()
                if self._connections.get(address) is connection:
                    del self._connections[address]
            raise UnreachableError(f"{name}: {str(problem) or type(problem).__name__}") from None
        self.asked = ""
        return answer

    async def _connected(self, address: Address) -> Any:
        config = self.config
        async with asyncio.timeout(config.setup_timeout_ms / 1000):
            return await create_conn(
                *address,
                client_id=config.client_id,
                request_timeout_ms=config.request_timeout_ms,
                security_protocol=config.security_protocol,
                ssl_context=self.tls,
                **config.sasl,
            )


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Return a Python TLS context. Raises `OptionError` if certificates or keys cannot be read."""
    try:
        return _tls_context(tls)
    except OSError as problem:
        raise OptionError(
            "kafka.ssl.*", f"certificates or keys cannot be read where this task runs: {problem}"
        ) from None


def _tls_context(tls: Tls) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=tls.ca_pem)
    context.check_hostname = tls.check_hostname
    if tls.certificate_path is not None:
        context.load_cert_chain(tls.certificate_path, tls.key_path, tls.key_password)
    elif tls.certificate_pem is not None:
        # Python's ssl reads certificates only from files.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "client.pem")
            path.touch(mode=0o600)
            path.write_text(f"{tls.certificate_pem}\n{tls.key_pem or ''}\n")
            context.load_cert_chain(path, None, tls.key_password)
    return context
