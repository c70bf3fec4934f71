"""The brokers that one task reads from: a connection to each, who leads what, and Fetch.

The connections are aiokafka's: TLS, SASL, the handshake on versions and the requests' forms are its own. What is done
with what comes is not: a Fetch answers the bytes of record batches, and nothing is made of a single record.
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
from loadwise.protocol.error_codes import ErrorCode
from loadwise.spark_source.errors import OptionError
from loadwise.spark_source.options.connection_config import ConnectionConfig, Tls

Address: TypeAlias = tuple[str, int]

CLOSE_S = 1.0
"""How long the connections may take to end in order."""

PASSING = frozenset(
    (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )
)
"""Answers that another question, perhaps to another broker, may mend."""


class UnreachableError(Exception):
    """No answer came; the text names the broker and the reason."""


class AnsweredError(Exception):
    """A broker answered an error."""

    def __init__(self, code: int) -> None:
        known = {int(each): each for each in ErrorCode}
        self.code = known.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
        name = self.code.name.replace("_", " ").lower()
        super().__init__(f"Kafka answers error {code}: {name}")


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer to a Fetch of one partition."""

    records: bytes
    """Record batches as they stand in the log; the last may be cut off."""
    aborted: list[tuple[int, int]]
    """Producer id and first offset of the aborted transactions among them, with ``read_committed``."""


@dataclass(slots=True)
class Brokers:
    """Connections of one task at a time, all on one event loop."""

    config: ConnectionConfig
    tls: ssl.SSLContext | None
    topics: frozenset[str] = frozenset()
    """The topics that will be read: the next question for a leader asks about all of them."""
    asked: str = ""
    """The broker whose answer is awaited; empty while none is."""
    _connections: dict[Address, Any] = field(default_factory=dict)
    _connecting: dict[Address, asyncio.Lock] = field(default_factory=dict)
    """Who holds it makes the connection that the others wait for."""
    _leaders: dict[TopicPartition, Address] = field(default_factory=dict)
    _learning: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Who holds it asks for leaders; the others wait for the answer, which is mostly theirs too."""

    async def leader(self, place: TopicPartition) -> Address:
        """The broker to fetch a partition from. Raises `UnreachableError` and `AnsweredError`."""
        known = self._leaders.get(place)
        if known is not None:
            return known
        async with self._learning:
            # Another range may have asked meanwhile.
            return self._leaders.get(place) or await self._learn(place)

    async def fetch(
        self, address: Address, wanted: Sequence[tuple[TopicPartition, int, int]]
    ) -> list[Fetched | AnsweredError]:
        """What stands in partitions that a broker leads, each from an offset on and about so many bytes of it at most.

        Of the first that has anything it is a whole batch at least, of the others nothing where the next batch is
        larger than what is wanted. Raises `UnreachableError`, and `AnsweredError` for all of it. Where there was an
        error, the next question looks for the leader anew.
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
            await asyncio.wait(closing, timeout=CLOSE_S)  # a peer that is gone does not answer the end of TLS

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
        # Who is above a quota is told nothing, and heard again once the time is over (``getThrottledResponse``).
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
        """The answer of the first broker that has one: those that are connected, then all that are known."""
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
    """Python's form of the TLS settings. Raises `OptionError` for certificates and keys that cannot be read."""
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
        # Python's ssl reads certificates from files only.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "client.pem")
            path.touch(mode=0o600)
            path.write_text(f"{tls.certificate_pem}\n{tls.key_pem or ''}\n")
            context.load_cert_chain(path, None, tls.key_password)
    return context
