"""`KafkaContainer` with the interface of testcontainers' class, but without a container.

A test suite changes only its import, and needs no Docker for Kafka. Other containers reach the coordinator like any
program on this machine. It listens on all addresses, and advertises the one that leads to other machines. Containers
and this machine can both connect to that.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from loadwise.coordinator.configs.broker_configs import LISTENER
from loadwise.coordinator.embedding.asynchronous import Coordinator
from loadwise.coordinator.embedding.threaded import ThreadedCoordinator
from loadwise.coordinator.errors import BadClusterError, NotRunningError
from loadwise.coordinator.security.broker_configs import security_of
from loadwise.coordinator.security.config_names import NAMES as SECURITY_CONFIGS
from loadwise.coordinator.security.options import Security
from loadwise.coordinator.settings import BrokerSettings, configured, is_known, nearest_setting

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
"""Variables that Kafka's images use themselves."""
_LOOPBACK = "127.0.0.1"
_ELSEWHERE = ("192.0.2.1", 9)
"""An address that does not exist (RFC 5737). Connecting a UDP socket to it sends nothing, but picks the route."""
_NEEDLESS = frozenset({"name", "network", "network_aliases", "ports", "docker_client_kw", "_wait_strategy"})
"""Arguments for Docker that lose nothing here; of the others a warning says that they have no effect."""
_REFUSED = ("transferables", "volumes", "command")
"""Arguments for Docker that would make it another broker."""
_NO_FILES = "pass settings by with_env, certificates and users by security=Security(...)"


class KafkaContainer:
    """A coordinator with the interface of testcontainers' ``KafkaContainer``; see ``docs/testing.md``.

    ::

        with KafkaContainer().with_kraft() as kafka:
            producer = KafkaProducer(bootstrap_servers=kafka.get_bootstrap_server())

    ``port`` is the port as inside a container; `get_exposed_port` returns the real one. Environment
    variables ``KAFKA_…`` are settings of the broker, and a warning lists those without an effect. ``image``
    changes nothing, and a warning lists other arguments for Docker without an effect. ``security`` replaces
    ``security_protocol``, and makes clients log in.

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
                f"a coordinator with security_protocol={security_protocol!r} needs users or certificates: "
                "pass security=Security(...)"
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
        if any(docker.pop(each, None) for each in _REFUSED):
            self._no_copies()
        _warn_of(sorted(docker.keys() - _NEEDLESS))

    # ---- how it is configured ----

    def with_cluster_id(self, cluster_id: str) -> Self:
        """Set the cluster's id."""
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

    def with_env_file(self, env_file: str | os.PathLike[str]) -> Self:
        """Set the variables of a file with lines ``KEY=value``. Raises `BadClusterError` for other lines."""
        for key, value in _variables_of(Path(env_file)):
            self.with_env(key, value)
        return self

    def with_bind_ports(self, container: str | int, host: str | int | None = None) -> Self:
        """Use this port of the machine instead of a free one."""
        if str(container).partition("/")[0] == str(self.port) and host is not None:
            self._host_port = int(str(host).partition("/")[0])
        return self

    def with_advertised_host(self, host: str) -> Self:
        """Advertise this host name; containers and this machine must both be able to resolve it.

        The default is ``TESTCONTAINERS_HOST_OVERRIDE`` if set, or else the address with which this machine reaches
        other machines. With ``127.0.0.1`` it listens on loopback only, which is enough if no container connects.
        """
        self._advertised_host = host
        return self

    def with_kwargs(self, **docker: Any) -> Self:
        """Do nothing, and warn: there is no container to pass these to."""
        _warn_of(sorted(docker))
        return self

    def with_command(self, command: str | list[str]) -> NoReturn:
        """Raise `BadClusterError`, because there is no container that runs it."""
        self._no_copies()

    def with_volume_mapping(self, host: object, container: str, mode: str = "ro") -> NoReturn:
        """Raise `BadClusterError`, because there is no container to map files into."""
        self._no_copies()

    def with_copy_into_container(self, transferable: object, destination_in_container: str, mode: int = 0o644) -> Self:
        """Raise `BadClusterError`, because there is no container to copy into."""
        self._no_copies()

    def _needless(self, *_: object, **__: object) -> Self:
        """Do nothing: all clients reach the coordinator, its data is in memory, and `start` waits until it is ready."""
        return self

    with_kraft = with_name = with_exposed_ports = with_network = with_network_aliases = _needless
    with_tmpfs_mount = waiting_for = maybe_emulate_amd64 = _needless

    # ---- running ----

    def start(self, timeout: int = 30) -> Self:
        """Start the coordinator and return once clients can connect.

        Raises OSError if the port is not available.
        """
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
            coordinator.cluster.brokers.cluster_id = self.cluster_id
        running = coordinator.in_thread()
        running.start()
        self._running = running
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stop the coordinator; its state is lost."""
        if self._running is not None:
            self._running.stop()
            self._running = None

    @property
    def coordinator(self) -> ThreadedCoordinator:
        """Return the coordinator, for faults, groups and the clock. Raises `NotRunningError`."""
        if self._running is None:
            raise NotRunningError("it is not running: use `with` or call start()")
        return self._running

    def get_bootstrap_server(self) -> str:
        """Return the address for this machine and its containers. Raises `NotRunningError`."""
        return self.coordinator.bootstrap_servers

    def get_container_host_ip(self) -> str:
        """Return the host of `get_bootstrap_server`."""
        return self.get_bootstrap_server().rpartition(":")[0]

    def get_exposed_port(self, port: int) -> int:
        """Return the port that clients connect to.

        Raises `BadClusterError` for any other than `port`.
        """
        if port != self.port:
            raise BadClusterError(f"port {port} is not open here; {self.port} is")
        return int(self.get_bootstrap_server().rpartition(":")[2])

    @property
    def status(self) -> str:
        """Return ``running`` or ``not_started``, as Docker does."""
        return "not_started" if self._running is None else "running"

    def get_wrapped_container(self) -> NoReturn:
        """Raise `BadClusterError`, because there is no container."""
        raise BadClusterError(
            "there is no container here, and no shell: use an admin client, or the attribute `coordinator`"
        )

    def exec(self, command: object) -> NoReturn:
        """Raise `BadClusterError`, because there is no container to run it in."""
        self.get_wrapped_container()

    def get_docker_client(self) -> NoReturn:
        """Raise `BadClusterError`, because there is no Docker."""
        self.get_wrapped_container()

    def get_container_info(self) -> NoReturn:
        """Raise `BadClusterError`, because there is no container to inspect."""
        raise BadClusterError(
            "there is no container here to inspect: use get_bootstrap_server() for the address, `status`,"
            " or the attribute `coordinator`"
        )

    def get_container_id(self) -> NoReturn:
        """Raise `BadClusterError`, because there is no container."""
        self.get_container_info()

    def wait(self) -> NoReturn:
        """Raise `BadClusterError`, because there is no container that could exit."""
        raise BadClusterError("there is no container here that exits: call stop(), or leave the `with` block")

    def reload(self) -> None:
        """Do nothing; `status` is always current."""

    def copy_into_container(self, transferable: object, destination_in_container: str, mode: int = 0o644) -> NoReturn:
        """Raise `BadClusterError`, because there is no container to copy into."""
        self._no_copies()

    def copy_from_container(self, source_in_container: str, destination_on_host: object) -> NoReturn:
        """Raise `BadClusterError`, because there is no container to copy from."""
        raise BadClusterError("there is no container here to copy from: its state is in the attribute `coordinator`")

    def create_file(self, content: bytes, path: str) -> NoReturn:
        """Raise `BadClusterError`, because there is no container to write into."""
        self._no_copies()

    def get_logs(self) -> tuple[bytes, bytes]:
        """Return nothing; it logs to the loggers ``loadwise.coordinator`` of this process."""
        return b"", b""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _no_copies(self) -> NoReturn:
        raise BadClusterError(f"there is no container here for files and commands: {_NO_FILES}")

    def _configured(self) -> tuple[BrokerSettings, Security | None]:
        """Return the settings that the variables make, by the rule of Kafka's images (``KafkaDockerWrapper``)."""
        configs, written = {}, {}
        for variable, value in self.env.items():
            if not variable.startswith(_PREFIX) or variable in _OF_THE_IMAGE:
                log.warning("the variable %s has no effect: it is not a Kafka broker setting", variable)
                continue
            name = _config_name(variable)
            configs[name], written[name] = value, variable
            if not is_known(name):
                # Only a warning, because Kafka's own container would also start with it.
                hint = nearest_setting(name, _variable)
                log.warning("the variable %s has no effect: Kafka has no setting %s%s", variable, name, hint)
                del configs[name]
        if self._security is None:
            security, configs = security_of(configs)
            return configured(BrokerSettings(), configs, written=written), security
        twice = [written[name] for name in configs if LISTENER.sub("", name, count=1) in SECURITY_CONFIGS]
        if twice:
            raise BadClusterError(f"security=… and {', '.join(twice)} both set the clients' security: use one")
        return configured(BrokerSettings(), configs, written=written), self._security


class RedpandaContainer(KafkaContainer):
    """A coordinator with the interface of testcontainers' ``RedpandaContainer``.

    It is the same coordinator as `KafkaContainer`. Its port is 9092, and it has no schema registry.
    """

    def __init__(self, image: str = "loadwise", *, security: Security | None = None, **docker: Any) -> None:
        super().__init__(image, port=9092, security=security, **docker)
        self.redpanda_port = self.port

    def get_schema_registry_address(self) -> NoReturn:
        """Raise `BadClusterError`, because there is no schema registry."""
        raise BadClusterError(
            "there is no schema registry here: use the client's mock registry (schema.registry.url=mock://…),"
            " or run a registry against get_bootstrap_server()"
        )


def _warn_of(arguments: Iterable[str]) -> None:
    for argument in arguments:
        log.warning("%s has no effect: there is no container", argument)


def _variables_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the variables of an env file: comments, ``export``, and quotes on one line, as most tools read them."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.strip().removeprefix("export ")
        if not text or text.startswith("#"):
            continue
        key, is_set, value = (part.strip() for part in text.partition("="))
        if not is_set or not key:
            raise BadClusterError(f"line {number} of {path} sets no variable: write KEY=value")
        quote = value[:1]
        if quote in {"'", '"'}:
            value, end, after = value[1:].partition(quote)
            if not end or (after.strip() and not after.strip().startswith("#")):
                raise BadClusterError(f"line {number} of {path} has an unclosed quote: close it")
        else:
            value = re.split(r"\s#", value, maxsplit=1)[0].rstrip()
        if "${" in value:
            raise BadClusterError(f"line {number} of {path} refers to another variable: write its value")
        yield key, value


def _config_name(variable: str) -> str:
    """Return a variable's config: ``KAFKA_LOG_RETENTION_MS`` is log.retention.ms.

    Two underscores stand for one, and three for a dash.
    """
    name = variable.removeprefix(_PREFIX).lower()
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def _variable(name: str) -> str:
    """Return the variable of a config, the reverse of `_config_name`."""
    return _PREFIX + name.replace("_", "__").replace("-", "___").replace(".", "_").upper()


def _reachable_host() -> str:
    """Return the address by which other machines reach this one; loopback without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(_ELSEWHERE)
        except OSError:
            return _LOOPBACK
        host: str = asking.getsockname()[0]
        return host
