"""The coordinator as a part of somebody's program: `Coordinator`, on a loop that runs."""

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
from loadwise.coordinator.apis import SERVICES
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
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.keeper import Snapshot
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
    """Control and view over HTTP, for tests in other languages and for people; see ``docs/testing.md``."""

    host: str = "127.0.0.1"
    """Loopback only: there is no encryption."""
    port: int = 0
    """0 takes a free one."""
    token: str | None = None
    """What requests have to carry, 16 characters or more; None makes one up: ``coordinator.http_token``."""
    open_view: bool = False
    """Whether groups and the page that shows them may be read without the token, by anybody on this machine."""


class Coordinator:
    """A cluster that Kafka clients connect to; starts with ``async with`` and is gone after it.

    ``topics`` maps names to numbers of partitions; others are made when they are asked for, unless ``settings`` forbid
    it. ``brokers`` is how many brokers there are, each on a port of its own; ``racks`` are dealt out to them in
    a circle. Port 0 takes free ports; another is the first broker's, and the others have those after it.

    It listens on loopback only: a ``host`` that other machines can reach needs ``allow_remote=True`` too, since there
    is no authentication. ``advertised_host`` and ``advertised_port`` are what clients are told to connect to, where
    that is not the address it listens on; the port counts up from broker to broker too, and 0 is the one it listens on.
    As with Kafka's own brokers, one that listens on every address (``0.0.0.0``) has to be given a host for them.
    ``security`` asks clients for passwords or certificates; without it everybody is let in. ``http`` opens control and
    view over HTTP.

    Everything is in memory, and gone with this object. ``data_dir`` is a directory that keeps topics, configs, groups,
    commits, transactions and records over restarts, besides: an answer leaves when what it tells of is safe there. It
    is read when the coordinator starts, and ``topics`` are then made where they are not there yet. A directory that has
    lost acknowledged writes is refused; with ``accept_data_loss`` the coordinator starts with what is left.

    Raises `NotLoopbackError`, `WeakTokenError`, `BadSecurityError`, `BadClusterError` and `BadTopicError`; starting
    raises OSError where an address cannot be bound, and `DataDirError` for a directory that cannot be used.
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
                f"other machines can reach {host!r}, and there is no authentication: give allow_remote=True too"
            )
        if not advertised_host and _is_every_address(host):
            raise BadClusterError(
                f"{host!r} is every address of this machine, and none that clients can connect to: "
                "give the host by which they reach it (advertised_host, --advertise)"
            )
        for first in (port, advertised_port or 0):
            if first and not 0 < first <= _LAST_PORT + 1 - brokers:
                raise BadClusterError(
                    f"{brokers} brokers from port {first} on: ports are from 1 to {_LAST_PORT}; begin lower, "
                    "or with 0, which takes free ones"
                )
        self._listen = (host, port)
        self._advertised = (advertised_host, advertised_port)
        self._limits = limits
        self._tls = None if security is None or security.tls is None else security.tls.context()
        self._server: Server | None = None
        self._clock = Clock(_clock_ms())
        settings = settings or BrokerSettings()
        nodes = Brokers(brokers, racks, default_replication_factor=settings.default_replication_factor)
        self.cluster = Cluster(SERVICES, settings, brokers=nodes, security=security)
        """The state behind the server; to be touched from the server's own loop only."""
        self.faults = Faults({service.api.name for service in SERVICES.values()})
        """What is to go wrong, and when: ``coordinator.faults.answer("Heartbeat", error="REBALANCE_IN_PROGRESS")``."""
        self.groups = GroupControl(self._running, _at_once)
        """Kick a member, end its session, force a rebalance."""
        self.clock = ClockControl(self._clock, self._running, _at_once)
        """Freeze, step and resume the coordinator's clock."""
        self.http_token = "" if http is None else http.token or secrets.token_urlsafe(32)
        """What HTTP requests have to carry; empty if there is no HTTP."""
        if http is not None and len(self.http_token) < _LEAST_TOKEN_LENGTH:
            raise WeakTokenError(f"the token for HTTP has {len(self.http_token)} characters; it takes 16 or more")
        self._http = None if http is None else self._make_http(http)
        self._data_dir = data_dir
        self._accept_data_loss = accept_data_loss
        self._directory: Directory | None = None
        self._first_topics = dict(topics or {})
        if data_dir is None:
            self._create_first_topics()

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect to, as ``127.0.0.1:43567``, with commas between several brokers.

        Raises `NotRunningError` before the start.
        """
        if self._server is None:
            raise NotRunningError("the coordinator has an address only while it runs: enter it with `async with` first")
        return ",".join(
            f"[{node.host}]:{node.port}" if ":" in node.host else f"{node.host}:{node.port}"
            for node in self.cluster.brokers.nodes
        )

    @property
    def http_url(self) -> str:
        """Where HTTP is served, as ``http://127.0.0.1:43568``.

        Raises `NotRunningError` before the start, and where there is no HTTP.
        """
        if self._server is None or self._http is None:
            raise NotRunningError("HTTP is served while the coordinator runs, if it was made with http=HttpOptions()")
        return self._http.url

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic. Raises `BadTopicError` if it is there already or cannot be."""
        self._check_has_state()
        refusal = self.cluster.topics.refusal(name, partitions)
        if refusal is not None:
            raise BadTopicError(refusal.message)
        self.cluster.topics.create(name, partitions)
        self._carry_on()

    def move_leader(self, topic: str, partition: int, to: int | None = None) -> None:
        """Let another replica lead a partition, in a new leader epoch; ``to`` None is the replica after the leader.

        Raises `BadClusterError` if there is no such partition or replica.
        """
        leadership.move_leader(self.cluster, topic, partition, to)
        self._carry_on()

    def move_coordinator(self, group_id: str, to: int | None = None) -> None:
        """Let another broker coordinate a group; ``to`` None is the next broker. See `leadership.move_coordinator`.

        Raises `BadClusterError` if there is no such broker.
        """
        self.cluster.now_ms = self._clock.now_ms()
        leadership.move_coordinator(self.cluster, group_id, to)
        self._carry_on()

    def move_transaction_coordinator(self, transactional_id: str, to: int | None = None) -> None:
        """Let another broker coordinate the transactions of an id; ``to`` None is the next broker.

        Raises `BadClusterError` if there is no such broker.
        """
        leadership.move_transaction_coordinator(self.cluster, transactional_id, to)
        self._carry_on()

    def drop_leader(self, topic: str, partition: int) -> None:
        """Let nobody lead a partition, until `move_leader`. Raises `BadClusterError` if there is no such partition."""
        leadership.drop_leader(self.cluster, topic, partition)
        self._carry_on()

    def set_isr(self, topic: str, partition: int, brokers: Sequence[int]) -> None:
        """Let these replicas of a partition be in sync, and no others; all of them let the ISR grow again.

        If they are fewer than ``min.insync.replicas``, a producer with acks=all is answered NOT_ENOUGH_REPLICAS, and
        what others write is read when they are enough again. Raises `BadClusterError` if that cannot be, as when its
        leader is not among them.
        """
        leadership.set_isr(self.cluster, topic, partition, brokers)
        self._carry_on()

    def stop_broker(self, broker: int) -> None:
        """Let a broker be gone, as if it was killed: its connections are closed, and new ones at once.

        Others lead its partitions and coordinate its groups and transactions; where no other replica is in sync, nobody
        leads. Raises `BadClusterError` if there is no such broker, or it is stopped already.
        """
        self.cluster.now_ms = self._clock.now_ms()
        leadership.stop_broker(self.cluster, broker)
        if self._server is not None:
            self._server.drop_connections(broker)
        self._carry_on()

    def start_broker(self, broker: int) -> None:
        """Let a stopped broker come back: its replicas are in sync again, and it leads what nobody else could lead.

        Raises `BadClusterError` if there is no such broker, or it runs.
        """
        leadership.start_broker(self.cluster, broker)
        self._carry_on()

    def snapshot(self) -> Snapshot:
        """All that the cluster has now, to be put back by `restore` any number of times.

        That is topics, configs, records, groups, committed offsets, transactions, quotas, ACLs and users of SCRAM. No
        byte of a record is copied. Faults, clock, connections and rebalances under way are not in it.
        """
        return self.cluster.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Put the cluster back to a snapshot, of this coordinator or of another one with as many brokers.

        All connections are closed; clients connect again, and find what they would find after a Kafka was restarted:
        members of groups are in them until their sessions end, a rebalance under way begins again, and a transaction
        that was open goes on or is aborted when its time is up. No producer gets an id and epoch that one had before.
        Faults and clock stay as they are.

        Raises `BadClusterError` where the snapshot needs brokers that there are not; nothing has changed then.
        """
        self._check_has_state()
        if self._server is not None:
            self._server.restore(snapshot)
        else:
            self.cluster.restore(snapshot, self._clock.now_ms())

    def in_thread(self) -> ThreadedCoordinator:
        """The same coordinator for code without a loop: ``with Coordinator(...).in_thread() as coordinator``."""
        return ThreadedCoordinator(self)

    def _running(self) -> Server:
        if self._server is None:
            raise NotRunningError("the coordinator does not run: enter it first")
        return self._server

    async def start(self) -> None:
        """Listen. `bootstrap_servers` is known after this."""
        # Clients ask for the address as soon as they can connect, but not before this task goes on.
        self._open_directory()
        server = Server(self.cluster, self._clock, self._limits, self.faults, self._tls, directory=self._directory)
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
        """Close the listener and all connections. What is in no data directory is gone with this object."""
        if self._server is not None:
            if self._http is not None:
                await self._http.stop()
            await self._server.stop()
            self._server = None
            self._close_directory()

    async def failed(self) -> DataDirError:
        """Wait until nothing is served any more because the data directory cannot be written; the answer is why.

        Raises `NotRunningError`.
        """
        return await asyncio.shield(self._running().failure)

    def _open_directory(self) -> None:
        """Read the data directory, if there is one, and have it told each change from now on."""
        if self._data_dir is None:
            return
        # Here, not above: without a data directory a coordinator starts without SQLite.
        from loadwise.coordinator.storage.directory import Directory  # noqa: PLC0415

        self._directory = Directory(self._data_dir, accept_data_loss=self._accept_data_loss)
        try:
            self.cluster.load(self._directory.read(), self._directory, self._clock.now_ms())
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
            raise NotRunningError("the data directory is read when the coordinator starts: enter it first")

    def _make_http(self, options: HttpOptions) -> HttpServer:
        # Here, not above: without HTTP a coordinator starts without it.
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
    """Milliseconds since 1970, which grow evenly whatever is done to the machine's clock meanwhile."""
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
