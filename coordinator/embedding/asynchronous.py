"""`Coordinator`, a cluster that runs inside your program on its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Never, Self, TypeVar

from loadwise.coordinator.calls.logins import SecurityOptions
from loadwise.coordinator.embedding.control import ClusterControl
from loadwise.coordinator.embedding.coordinator_options import CoordinatorOptions, HttpOptions
from loadwise.coordinator.embedding.embedded import Embedded, HttpEndpoint
from loadwise.coordinator.embedding.threaded import ThreadedCoordinator
from loadwise.coordinator.errors import BadTopicError, DataDirError
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.serving.connections import ServerLimits
from loadwise.coordinator.settings import BrokerSettings

T = TypeVar("T")


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
            raise BadTopicError(f"topics is {topics!r}; it must map names to partition counts, as in {{'orders': 3}}")
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
    from loadwise.coordinator.embedding.http.api import HttpApi  # noqa: PLC0415
    from loadwise.coordinator.embedding.http.server import HttpServer  # noqa: PLC0415

    api = HttpApi(control, open_view=options.open_view)
    return HttpServer(api.handle, options.host, options.port)


def _at_once(action: Callable[[], T]) -> T:
    return action()
