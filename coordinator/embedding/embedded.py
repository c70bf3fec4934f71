"""A cluster with all around it, in one process: server, clock, faults, data directory and HTTP API."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from loadwise.coordinator.clock import Clock
from loadwise.coordinator.cluster.brokers import Brokers
from loadwise.coordinator.embedding.coordinator_options import CoordinatorOptions
from loadwise.coordinator.errors import CoordinatorError, NotRunningError
from loadwise.coordinator.faults.rules import Faults
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.keeper import DataDirectory, Snapshot
from loadwise.coordinator.routing.router import Router
from loadwise.coordinator.serving.server import Server


class HttpEndpoint(Protocol):
    """The HTTP API; `loadwise.coordinator.embedding.http.server.HttpServer` implements it."""

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
        # Since 1970, and it grows evenly even if the machine's clock is set.
        self.clock = Clock(time.monotonic, time.time() - time.monotonic())
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
            raise NotRunningError("the coordinator is not running: start it first")
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
