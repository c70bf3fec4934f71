"""The coordinator in the place of a container: `KafkaContainer` with the interface of testcontainers' class.

A suite switches by its import, and needs no Docker for Kafka any more. What another container runs reaches the
coordinator as it would reach any program on this machine: it listens on all of the machine's addresses, and tells
clients the one that leads to other machines, which containers can connect to, and this machine as well.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NoReturn, Self

from loadwise.coordinator.embedded import Coordinator
from loadwise.coordinator.errors import BadClusterError, NotRunningError
from loadwise.coordinator.security.broker_configs import LISTENER, security_of
from loadwise.coordinator.security.broker_configs import NAMES as SECURITY_CONFIGS
from loadwise.coordinator.security.options import Security
from loadwise.coordinator.settings import BrokerSettings, configured, is_known
from loadwise.coordinator.threaded import ThreadedCoordinator

log = logging.getLogger("loadwise.coordinator")

_PREFIX = "KAFKA_"
_OF_THE_IMAGE = frozenset(
    {
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_OPTS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_VERSION",
    }
)
"""Variables that Kafka's images take for themselves."""
_LOOPBACK = "127.0.0.1"
_ELSEWHERE = ("192.0.2.1", 9)
"""An address that is nowhere (RFC 5737); connecting a socket of UDP to it sends nothing, but picks the way there."""


class KafkaContainer:
    """A coordinator with the interface of testcontainers' ``KafkaContainer``; see ``docs/testing.md``.

    ::

        with KafkaContainer().with_kraft() as kafka:
            producer = KafkaProducer(bootstrap_servers=kafka.get_bootstrap_server())

    ``port`` is the name of its port, as inside a container; `get_exposed_port` tells the real one. Environment
    variables ``KAFKA_…`` are settings of the broker, and a warning in the log names those without an effect. ``image``
    and whatever else only Docker needs changes nothing. ``security`` asks clients to log in, in place of
    ``security_protocol``.

    Raises `BadClusterError` for a ``security_protocol`` without ``security``.
    """

    def __init__(
        self,
        image: str = "loadwise",
        port: int = 9093,
        wait_strategy_check_string: str = "",
        listener_name: str = "PLAINTEXT",
        security_protocol: str = "PLAINTEXT",
        *,
        security: Security | None = None,
        env: Mapping[str, str] | None = None,
        **docker: Any,
    ) -> None:
        if security is None and security_protocol != "PLAINTEXT":
            raise BadClusterError(
                f"a coordinator with security_protocol={security_protocol!r} has to know users or certificates: "
                "give security=Security(...)"
            )
        self.image = image
        self.port = port
        self.cluster_id: str | None = None
        self.env: dict[str, str] = dict(env or {})
        self._security = security
        self._host = "0.0.0.0"  # noqa: S104 (as a container's published port)
        self._host_port = 0
        self._advertised_host: str | None = None
        self._running: ThreadedCoordinator | None = None

    # ---- what it is to be ----

    def with_kraft(self) -> Self:
        """Nothing to do: there is no ZooKeeper here."""
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        """Call the cluster this."""
        self.cluster_id = cluster_id
        return self

    def with_env(self, key: str, value: str) -> Self:
        """Set a variable; ``KAFKA_NUM_PARTITIONS`` is the broker's ``num.partitions``."""
        self.env[key] = str(value)
        return self

    def with_envs(self, **variables: str) -> Self:
        """Set variables."""
        for key, value in variables.items():
            self.with_env(key, value)
        return self

    def with_bind_ports(self, container: str | int, host: str | int | None = None) -> Self:
        """Let clients connect to this port of the machine, in place of a free one."""
        if str(container).partition("/")[0] == str(self.port) and host is not None:
            self._host_port = int(str(host).partition("/")[0])
        return self

    def with_advertised_host(self, host: str) -> Self:
        """Tell clients this name of the machine; containers and this machine must both know it.

        Without it, clients are told ``TESTCONTAINERS_HOST_OVERRIDE`` if that is set, else the address by which this
        machine reaches others. ``127.0.0.1`` lets it listen on that alone, where no container has to reach it.
        """
        self._advertised_host = host
        return self

    def with_exposed_ports(self, *ports: str | int) -> Self:
        """Nothing to do: its port can be connected to."""
        return self

    def with_network(self, network: object) -> Self:
        """Nothing to do: every network of this machine's containers reaches it, by `get_bootstrap_server`."""
        return self

    def with_network_aliases(self, *aliases: str) -> Self:
        """Nothing to do; a container that shall know it by a name gets that as an extra host (``docs/testing.md``)."""
        return self

    def with_name(self, name: str) -> Self:
        """Nothing to do."""
        return self

    def with_kwargs(self, **docker: Any) -> Self:
        """Nothing to do."""
        return self

    def with_command(self, command: str | list[str]) -> Self:
        """Nothing to do."""
        return self

    def with_volume_mapping(self, host: object, container: str, mode: str = "ro") -> Self:
        """Nothing to do."""
        return self

    def waiting_for(self, strategy: object) -> Self:
        """Nothing to do: `start` comes back when clients can connect."""
        return self

    # ---- running ----

    def start(self, timeout: int = 30) -> Self:
        """Start it; clients can connect when this comes back. Raises OSError where its port cannot be had."""
        settings, security = self._configured()
        advertised = self._advertised_host or os.environ.get("TESTCONTAINERS_HOST_OVERRIDE") or _reachable_host()
        coordinator = Coordinator(
            host=_LOOPBACK if advertised == _LOOPBACK else self._host,
            port=self._host_port,
            allow_remote=True,
            advertised_host=advertised,
            settings=settings,
            security=security,
        )
        if self.cluster_id is not None:
            coordinator.cluster.cluster_id = self.cluster_id
        running = coordinator.in_thread()
        running.start()
        self._running = running
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stop it; what it held is gone."""
        if self._running is not None:
            self._running.stop()
            self._running = None

    @property
    def coordinator(self) -> ThreadedCoordinator:
        """What a container does not have: faults, groups and the clock. Raises `NotRunningError`."""
        if self._running is None:
            raise NotRunningError("it does not run yet: enter it with `with`, or call start()")
        return self._running

    def get_bootstrap_server(self) -> str:
        """Where clients connect to, from this machine and from containers on it. Raises `NotRunningError`."""
        return self.coordinator.bootstrap_servers

    def get_container_host_ip(self) -> str:
        """The host of `get_bootstrap_server`."""
        return self.get_bootstrap_server().rpartition(":")[0]

    def get_exposed_port(self, port: int) -> int:
        """The port that clients connect to. Raises `BadClusterError` for another than `port`."""
        if port != self.port:
            raise BadClusterError(f"port {port} is not open here; {self.port} is")
        return int(self.get_bootstrap_server().rpartition(":")[2])

    @property
    def status(self) -> str:
        """``running`` or ``not_started``, as Docker calls it."""
        return "not_started" if self._running is None else "running"

    def get_wrapped_container(self) -> NoReturn:
        """There is none. Raises `BadClusterError`; so do `exec` and `get_docker_client`."""
        raise BadClusterError(
            "there is no container here, and no shell: use an admin client, or the attribute `coordinator`"
        )

    def exec(self, command: object) -> NoReturn:
        """Nothing can be run inside it."""
        self.get_wrapped_container()

    def get_docker_client(self) -> NoReturn:
        """There is no Docker behind it."""
        self.get_wrapped_container()

    def get_logs(self) -> tuple[bytes, bytes]:
        """Nothing: it logs to the loggers ``loadwise.coordinator`` of this process."""
        return b"", b""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _configured(self) -> tuple[BrokerSettings, Security | None]:
        """What the variables make of the broker, by the rule of Kafka's own images (``KafkaDockerWrapper``)."""
        configs, written = {}, {}
        for variable, value in self.env.items():
            if not variable.startswith(_PREFIX) or variable in _OF_THE_IMAGE:
                log.warning("the variable %s has no effect here: it is no setting of a Kafka broker", variable)
                continue
            name = _config_name(variable)
            configs[name], written[name] = value, variable
            if not is_known(name):
                # Kafka's own container would start with it; so does this one.
                log.warning("the variable %s has no effect: there is no setting %s in Kafka", variable, name)
                del configs[name]
        if self._security is None:
            security, configs = security_of(configs)
            return configured(BrokerSettings(), configs, written=written), security
        twice = [written[name] for name in configs if LISTENER.sub("", name, count=1) in SECURITY_CONFIGS]
        if twice:
            raise BadClusterError(f"what clients are asked for is in security=…, and in {', '.join(twice)}: use one")
        return configured(BrokerSettings(), configs, written=written), self._security


def _config_name(variable: str) -> str:
    """``KAFKA_LOG_RETENTION_MS`` is log.retention.ms; two underscores stand for one, and three for a dash."""
    name = variable.removeprefix(_PREFIX).lower()
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def _reachable_host() -> str:
    """The address by which this machine reaches others, and they it; loopback's if it has no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(_ELSEWHERE)
        except OSError:
            return _LOOPBACK
        host: str = asking.getsockname()[0]
        return host
