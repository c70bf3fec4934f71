"""`Coordinator`, a cluster that runs inside your program on its event loop."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from loadwise.coordinator import leadership
from loadwise.coordinator.clock import Clock
from loadwise.coordinator.cluster.brokers import Brokers
from loadwise.coordinator.control import ClockControl, GroupControl
from loadwise.coordinator.errors import (
    BadClusterError,
    BadTopicError,
    CoordinatorError,
    DataDirError,
    NotLoopbackError,
    NotRunningError,
    WeakTokenError,
)
from loadwise.coordinator.faults.rules import Faults
from loadwise.coordinator.keeper import Snapshot
from loadwise.coordinator.router import Router
from loadwise.coordinator.security.options import Security
from loadwise.coordinator.server import Server, ServerLimits
from loadwise.coordinator.settings import BrokerSettings
from loadwise.coordinator.threaded import ThreadedCoordinator

if TYPE_CHECKING:
    from loadwise.coordinator.http.server import HttpServer
    from loadwise.coordinator.storage.directory import Directory

_LEAST_TOKEN_LENGTH = 16
_LAST_PORT = 65535

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """Options of the HTTP API and the page, for people and for tests in other languages.

    See ``docs/testing.md``.
    """

    host: str = "127.0.0.1"
    """Loopback only, because there is no encryption."""
    port: int = 0
    """0 picks a free port."""
    token: str | None = None
    """The token that requests must send, at least 16 characters. None generates one: ``coordinator.http_token``."""
    open_view: bool = False
    """Whether anyone on this machine may read the groups and the page without the token."""


class Coordinator:
    """A cluster that Kafka clients connect to. It runs inside ``async with``.

    ``topics`` maps names to numbers of partitions. Other topics are created on first use, unless ``settings`` disable
    that. ``brokers`` is the number of brokers; each has its own port. ``racks`` are assigned to them round-robin. Port
    0 picks free ports. Any other port is the first broker's, and the following brokers use the ports after it.

    The brokers listen on loopback only. Without authentication, a ``host`` that other machines can reach also needs
    ``allow_remote=True``. ``advertised_host`` and ``advertised_port`` are the address that clients get, if it differs
    from the one that the broker listens on. The advertised port also counts up from broker to broker, and 0 means the
    port that the broker listens on. As in Kafka, a broker that listens on every address (``0.0.0.0``) needs an
    advertised host. ``security`` requires passwords or certificates; without it every client is accepted. ``http``
    enables the HTTP API and the page.

    Everything is in memory and is lost when the coordinator stops. ``data_dir`` is a directory that also keeps topics,
    configs, groups, commits, transactions and records across restarts; a response is sent once its changes are safe
    there. The directory is read at the start, and ``topics`` that it lacks are then created. A directory that has lost
    acknowledged writes is refused; ``accept_data_loss`` starts with what is left.

    Raises `NotLoopbackError`, `WeakTokenError`, `BadSecurityError`, `BadClusterError` and `BadTopicError`. Starting
    raises OSError if an address cannot be bound, and `DataDirError` if the directory cannot be used.
    """

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        brokers: int = 1,
        racks: Sequence[str] = (),
        host: str = "127.0.0.1",
        port: int = 0,
        allow_remote: bool = False,
        advertised_host: str | None = None,
        advertised_port: int | None = None,
        settings: BrokerSettings | None = None,
        limits: ServerLimits | None = None,
        security: Security | None = None,
        http: HttpOptions | None = None,
        data_dir: str | PathLike[str] | None = None,
        accept_data_loss: bool = False,
    ) -> None:
        if not allow_remote and not _is_loopback(host):
            raise NotLoopbackError(
                f"other machines can reach {host!r} without authentication; to allow that, pass allow_remote=True"
            )
        if not advertised_host and _is_every_address(host):
            raise BadClusterError(
                f"{host!r} means every address of this machine, and clients cannot connect to it: "
                "set the host that they connect to (advertised_host, --advertise)"
            )
        for first in (port, advertised_port or 0):
            if first and not 0 < first <= _LAST_PORT + 1 - brokers:
                raise BadClusterError(
                    f"{brokers} brokers from port {first} on: ports range from 1 to {_LAST_PORT}; start lower, "
                    "or use 0 for free ports"
                )
        self._listen = (host, port)
        self._advertised = (advertised_host, advertised_port)
        self._limits = limits
        self._tls = None if security is None or security.tls is None else security.tls.context()
        self._server: Server | None = None
        self._clock = Clock(_clock_ms())
        settings = settings or BrokerSettings()
        nodes = Brokers(brokers, racks, default_replication_factor=settings.default_replication_factor)
        self._router = Router(settings, brokers=nodes, security=security)
        self.cluster = self._router.cluster
        """The state behind the server; use it on the server's event loop only."""
        self.faults = Faults({api.name for api in self.cluster.apis})
        """The faults that clients get: ``coordinator.faults.answer("Heartbeat", error="REBALANCE_IN_PROGRESS")``."""
        self.groups = GroupControl(self._running, _at_once)
        """Shows groups, removes members, ends sessions and forces rebalances."""
        self.clock = ClockControl(self._clock, self._running, _at_once)
        """Freezes, steps and resumes the coordinator's clock."""
        self.http_token = "" if http is None else http.token or secrets.token_urlsafe(32)
        """The token that HTTP requests must send; empty if there is no HTTP."""
        if http is not None and len(self.http_token) < _LEAST_TOKEN_LENGTH:
            raise WeakTokenError(f"the token for HTTP has {len(self.http_token)} characters; it needs at least 16")
        self._http = None if http is None else self._make_http(http)
        self._data_dir = data_dir
        self._accept_data_loss = accept_data_loss
        self._directory: Directory | None = None
        self._first_topics = dict(topics or {})
        if data_dir is None:
            self._create_first_topics()

    @property
    def bootstrap_servers(self) -> str:
        """Return the addresses of all brokers, such as ``127.0.0.1:43567``, separated by commas.

        Raises `NotRunningError` before the start.
        """
        if self._server is None:
            raise NotRunningError("the coordinator has an address only while it runs: use `async with` first")
        return ",".join(
            f"[{node.host}]:{node.port}" if ":" in node.host else f"{node.host}:{node.port}"
            for node in self.cluster.brokers.nodes
        )

    @property
    def http_url(self) -> str:
        """Return the URL of the HTTP API, such as ``http://127.0.0.1:43568``.

        Raises `NotRunningError` before the start, and without ``http``.
        """
        if self._server is None or self._http is None:
            raise NotRunningError("HTTP needs a running coordinator that was created with http=HttpOptions()")
        return self._http.url

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic. Raises `BadTopicError` if it exists already or is not valid."""
        self._check_has_state()
        refusal = self.cluster.topics.refusal(name, partitions)
        if refusal is not None:
            raise BadTopicError(refusal.message)
        self.cluster.topics.create(name, partitions)
        self._carry_on()

    def move_leader(self, topic: str, partition: int, to: int | None = None) -> None:
        """Make another replica the leader of a partition, with a new leader epoch.

        ``to`` None picks the replica after the leader. Raises `BadClusterError` if there is no such partition or
        replica.
        """
        leadership.move_leader(self.cluster, topic, partition, to)
        self._carry_on()

    def move_coordinator(self, group_id: str, to: int | None = None) -> None:
        """Make another broker the coordinator of a group; ``to`` None picks the next broker.

        See `leadership.move_coordinator`. Raises `BadClusterError` if there is no such broker.
        """
        self.cluster.now_ms = self._clock.now_ms()
        leadership.move_coordinator(self.cluster, group_id, to)
        self._carry_on()

    def move_transaction_coordinator(self, transactional_id: str, to: int | None = None) -> None:
        """Make another broker the transaction coordinator of an id; ``to`` None picks the next.

        Raises `BadClusterError` if there is no such broker.
        """
        leadership.move_transaction_coordinator(self.cluster, transactional_id, to)
        self._carry_on()

    def drop_leader(self, topic: str, partition: int) -> None:
        """Leave a partition without a leader until `move_leader`.

        Raises `BadClusterError` if there is no such partition.
        """
        leadership.drop_leader(self.cluster, topic, partition)
        self._carry_on()

    def set_isr(self, topic: str, partition: int, brokers: Sequence[int]) -> None:
        """Set the in-sync replicas of a partition; setting all of them lets the ISR grow again.

        With fewer than ``min.insync.replicas``, a producer with acks=all gets NOT_ENOUGH_REPLICAS. What other producers
        write becomes readable once enough replicas are in sync. Raises `BadClusterError` if the ISR is not valid, for
        example without the leader.
        """
        leadership.set_isr(self.cluster, topic, partition, brokers)
        self._carry_on()

    def stop_broker(self, broker: int) -> None:
        """Stop a broker as if it was killed; it closes all connections, and new ones at once.

        Other brokers take over its partitions, groups and transactions. A partition without another in-sync replica has
        no leader. Raises `BadClusterError` if there is no such broker, or it is stopped already.
        """
        self.cluster.now_ms = self._clock.now_ms()
        leadership.stop_broker(self.cluster, broker)
        if self._server is not None:
            self._server.drop_connections(broker)
        self._carry_on()

    def start_broker(self, broker: int) -> None:
        """Start a stopped broker; its replicas are in sync again.

        It also leads the partitions that had no leader without it. Raises `BadClusterError` if there is no such broker,
        or it runs already.
        """
        leadership.start_broker(self.cluster, broker)
        self._carry_on()

    def snapshot(self) -> Snapshot:
        """Return the cluster's current state; `restore` accepts it any number of times.

        It contains topics, configs, records, groups, committed offsets, transactions, quotas, ACLs and SCRAM users. No
        byte of a record is copied. It contains no faults, clock, connections or current rebalances.
        """
        return self.cluster.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot of this coordinator, or of another one with as many brokers.

        All connections are closed. Clients reconnect, and find the state of a restarted Kafka: members stay in their
        groups until their sessions end, a rebalance starts again, and an open transaction continues or times out. No
        producer gets an id and epoch that were used before. Faults and clock stay as they are.

        Raises `BadClusterError` if the snapshot needs brokers that do not exist; then nothing has changed.
        """
        self._check_has_state()
        if self._server is not None:
            self._server.restore(snapshot)
        else:
            self._router.restore(snapshot, self._clock.now_ms())

    def in_thread(self) -> ThreadedCoordinator:
        """Return the same coordinator for synchronous code.

        ``with Coordinator(...).in_thread() as coordinator``
        """
        return ThreadedCoordinator(self)

    def _running(self) -> Server:
        if self._server is None:
            raise NotRunningError("the coordinator does not run: start it first")
        return self._server

    async def start(self) -> None:
        """Start to listen. Afterwards `bootstrap_servers` is known."""
        # Set before this task continues, because clients ask for the address as soon as they can connect.
        self._open_directory()
        server = Server(self._router, self._clock, self._limits, self.faults, self._tls, directory=self._directory)
        try:
            bound = await server.start(*self._listen)
            try:
                if self._http is not None:
                    await self._http.start()
            except OSError:
                await server.stop()
                raise
        except OSError:
            self._close_directory()
            raise
        self._server = server
        host, port = self._advertised
        for index, (node, (bound_host, bound_port)) in enumerate(zip(self.cluster.brokers.nodes, bound, strict=True)):
            node.host = host or bound_host
            node.port = port + index if port else bound_port

    async def stop(self) -> None:
        """Close the listener and all connections. State outside a data directory is lost."""
        if self._server is not None:
            if self._http is not None:
                await self._http.stop()
            await self._server.stop()
            self._server = None
            self._close_directory()

    async def failed(self) -> DataDirError:
        """Wait until the data directory cannot be written and serving stops; return the error.

        Raises `NotRunningError`.
        """
        return await asyncio.shield(self._running().failure)

    def _open_directory(self) -> None:
        """Read the data directory, if there is one, and write each further change to it."""
        if self._data_dir is None:
            return
        # Imported here, so that a coordinator without a data directory starts without SQLite.
        from loadwise.coordinator.storage.directory import Directory  # noqa: PLC0415

        self._directory = Directory(self._data_dir, accept_data_loss=self._accept_data_loss)
        try:
            self._router.load(self._directory.read(), self._directory, self._clock.now_ms())
            self._create_first_topics()
            self._directory.commit()
        except CoordinatorError:
            self._close_directory()
            raise

    def _close_directory(self) -> None:
        if self._directory is not None:
            self._directory.close()
            self._directory = None

    def _create_first_topics(self) -> None:
        for name, partitions in self._first_topics.items():
            if self._data_dir is None or self.cluster.topics.get(name) is None:
                self.create_topic(name, partitions)

    def _check_has_state(self) -> None:
        if self._data_dir is not None and self._directory is None:
            raise NotRunningError("the data directory is read when the coordinator starts: start it first")

    def _make_http(self, options: HttpOptions) -> HttpServer:
        # Imported here, so that a coordinator without HTTP starts without it.
        from loadwise.coordinator.http.api import HttpApi  # noqa: PLC0415
        from loadwise.coordinator.http.server import HttpServer  # noqa: PLC0415

        api = HttpApi(self, self.http_token, open_view=options.open_view)
        return HttpServer(api.handle, options.host, options.port)

    def _carry_on(self) -> None:
        if self._server is not None:
            self._server.carry_on()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


def _clock_ms() -> Callable[[], int]:
    """Milliseconds since 1970 that grow evenly even if the machine's clock is set."""
    ahead_s = time.time() - time.monotonic()
    return lambda: int((time.monotonic() + ahead_s) * 1000)


def _at_once(action: Callable[[], T]) -> T:
    return action()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_every_address(host: str) -> bool:
    try:
        return not host or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
