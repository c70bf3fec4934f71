"""`Coordinator`, a cluster that runs inside your program on its event loop."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Never, Protocol, Self, TypeVar

from loadwise.coordinator.clock import Clock
from loadwise.coordinator.cluster.brokers import Brokers
from loadwise.coordinator.connections import ServerLimits
from loadwise.coordinator.control import ClusterControl
from loadwise.coordinator.coordinator_options import CoordinatorOptions, HttpOptions
from loadwise.coordinator.errors import BadTopicError, CoordinatorError, DataDirError, NotRunningError
from loadwise.coordinator.faults.rules import Faults
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.keeper import DataDirectory, Snapshot
from loadwise.coordinator.logins import SecurityOptions
from loadwise.coordinator.router import Router
from loadwise.coordinator.server import Server
from loadwise.coordinator.settings import BrokerSettings
from loadwise.coordinator.threaded import ThreadedCoordinator

T = TypeVar("T")


class HttpEndpoint(Protocol):
    """The HTTP API; `loadwise.coordinator.http.server.HttpServer` implements it."""

    url: str
    """Its URL, once it listens."""

    async def start(self) -> None:
        """Start to listen. Raises OSError if it cannot."""

    async def stop(self) -> None:
        """Close the listener and all connections."""


class Embedded:
    """A cluster with its server, its data directory and its HTTP API."""

    def __init__(self, options: CoordinatorOptions) -> None:
        self.options = options
        self.tls = None if options.security is None or options.security.tls is None else options.security.tls.context()
        self.clock = Clock(_clock_ms())
        factor = options.settings.default_replication_factor
        nodes = Brokers(options.brokers, options.racks, default_replication_factor=factor)
        groups = replace(options.settings.groups, initial_delay_ends_by_timer=True)
        self.router = Router(replace(options.settings, groups=groups), brokers=nodes, security=options.security)
        self.cluster = self.router.cluster
        self.faults = Faults({api.name for api in self.cluster.apis})
        self.http: HttpEndpoint | None = None
        """Set by `Coordinator`, which it controls."""
        self.http_token = "" if options.http is None else options.http.token or secrets.token_urlsafe(32)
        """The token of the HTTP API; empty without one."""
        self._server: Server | None = None
        self._directory: DataDirectory | None = None
        if options.data_dir is None:
            self._create_first_topics()

    @property
    def server(self) -> Server:
        """Return the running server. Raises `NotRunningError`."""
        if self._server is None:
            raise NotRunningError("the coordinator does not run: start it first")
        return self._server

    @property
    def bootstrap_servers(self) -> str:
        """Return the addresses of all brokers. Raises `NotRunningError`."""
        if self._server is None:
            raise NotRunningError("the coordinator has an address only while it runs: use `with` or `async with` first")
        return ",".join(
            f"[{node.host}]:{node.port}" if ":" in node.host else f"{node.host}:{node.port}"
            for node in self.cluster.brokers.nodes
        )

    @property
    def http_url(self) -> str:
        """Return the URL of the HTTP API. Raises `NotRunningError`."""
        if self._server is None or self.http is None:
            raise NotRunningError("HTTP needs a running coordinator that was created with http=HttpOptions()")
        return self.http.url

    def change(self, change: Callable[[Cluster], None], *, stops: int | None = None) -> None:
        """Change the cluster and answer the clients that wait for it; ``stops`` is a broker that stops."""
        self._check_has_state()
        self.cluster.now_ms = self.clock.now_ms()
        change(self.cluster)
        if self._server is not None:
            if stops is not None:
                self._server.drop_connections(stops)
            self._server.carry_on()

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot and close all connections."""
        self._check_has_state()
        if self._server is not None:
            self._server.restore(snapshot)
        else:
            self.router.restore(snapshot, self.clock.now_ms())

    async def start(self) -> None:
        """Start to listen."""
        # Set before this task continues, because clients ask for the address as soon as they can connect.
        self._open_directory()
        options = self.options
        server = Server(self.router, self.clock, options.limits, self.faults, self.tls, directory=self._directory)
        try:
            bound = await server.start(options.host, options.port)
            try:
                if self.http is not None:
                    await self.http.start()
            except OSError:
                await server.stop()
                raise
        except OSError:
            self._close_directory()
            raise
        self._server = server
        for index, (node, address) in enumerate(zip(self.cluster.brokers.nodes, bound, strict=True)):
            node.host, node.port = options.advertised(index, *address)

    async def stop(self) -> None:
        """Close the listener and all connections."""
        if self._server is not None:
            if self.http is not None:
                await self.http.stop()
            await self._server.stop()
            self._server = None
            self._close_directory()

    def _open_directory(self) -> None:
        """Read the data directory, if there is one, and write each further change to it."""
        options = self.options
        if options.data_dir is None:
            return
        # Imported here, so that a coordinator without a data directory starts without SQLite.
        from loadwise.coordinator.storage.directory import Directory  # noqa: PLC0415

        directory = self._directory = Directory(options.data_dir, accept_data_loss=options.accept_data_loss)
        try:
            self.router.load(directory.read(), directory, self.clock.now_ms())
            self._create_first_topics()
            directory.commit()
        except CoordinatorError:
            self._close_directory()
            raise

    def _close_directory(self) -> None:
        if self._directory is not None:
            self._directory.close()
            self._directory = None

    def _create_first_topics(self) -> None:
        for name, partitions in self.options.topics.items():
            if self.options.data_dir is None or self.cluster.topics.get(name) is None:
                self.cluster.create_topic(name, partitions)

    def _check_has_state(self) -> None:
        if self.options.data_dir is not None and self._directory is None:
            raise NotRunningError("the data directory is read when the coordinator starts: start it first")


class Coordinator(ClusterControl):
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
        security: SecurityOptions | None = None,
        http: HttpOptions | None = None,
        data_dir: str | PathLike[str] | None = None,
        accept_data_loss: bool = False,
    ) -> None:
        if not isinstance(topics, Mapping | None):
            raise BadTopicError(f"topics is {topics!r}; it must map names to numbers of partitions: {{'orders': 3}}")
        options = CoordinatorOptions(
            topics=dict(topics or {}),
            brokers=brokers,
            racks=racks,
            host=host,
            port=port,
            allow_remote=allow_remote,
            advertised_host=advertised_host,
            advertised_port=advertised_port,
            settings=settings or BrokerSettings(),
            limits=limits or ServerLimits(),
            security=security,
            http=http,
            data_dir=data_dir,
            accept_data_loss=accept_data_loss,
        )
        self._embedded = Embedded(options)
        super().__init__(self._embedded, _at_once)
        if http is not None:
            self._embedded.http = _http_endpoint(self, http)

    @property
    def cluster(self) -> Cluster:
        """Return the state behind the server; use it on the server's event loop only."""
        return self._embedded.cluster

    def in_thread(self) -> ThreadedCoordinator:
        """Return the same coordinator for synchronous code.

        ``with Coordinator(...).in_thread() as coordinator``
        """
        return ThreadedCoordinator(self._embedded)

    async def start(self) -> None:
        """Start to listen. Afterwards `bootstrap_servers` is known."""
        await self._embedded.start()

    async def stop(self) -> None:
        """Close the listener and all connections. State outside a data directory is lost."""
        await self._embedded.stop()

    async def failed(self) -> DataDirError:
        """Wait until the data directory cannot be written and serving stops; return the error.

        Raises `NotRunningError`.
        """
        return await asyncio.shield(self._embedded.server.failure)

    if not TYPE_CHECKING:  # type checkers refuse the `with` themselves

        def __enter__(self) -> Never:
            """Refuse a ``with`` that lacks ``in_thread()``."""
            raise TypeError("use `with Coordinator(...).in_thread()`, or `async with Coordinator(...)` in asyncio code")

        def __exit__(self, *error: object) -> None:
            """Python asks for this before it enters."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


def _http_endpoint(control: ClusterControl, options: HttpOptions) -> HttpEndpoint:
    # Imported here, so that a coordinator without HTTP starts without it.
    from loadwise.coordinator.http.api import HttpApi  # noqa: PLC0415
    from loadwise.coordinator.http.server import HttpServer  # noqa: PLC0415

    api = HttpApi(control, open_view=options.open_view)
    return HttpServer(api.handle, options.host, options.port)


def _at_once(action: Callable[[], T]) -> T:
    return action()


def _clock_ms() -> Callable[[], int]:
    """Milliseconds since 1970 that grow evenly even if the machine's clock is set."""
    ahead_s = time.time() - time.monotonic()
    return lambda: int((time.monotonic() + ahead_s) * 1000)
