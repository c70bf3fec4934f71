"""Where a coordinator listens, and what it begins with."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike

from loadwise.coordinator.calls.logins import SecurityOptions
from loadwise.coordinator.errors import BadClusterError, NotLoopbackError, WeakTokenError
from loadwise.coordinator.serving.connections import ServerLimits
from loadwise.coordinator.settings import BrokerSettings

_LEAST_TOKEN_LENGTH = 16
_LAST_PORT = 65535


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

    def __post_init__(self) -> None:
        if self.token and len(self.token) < _LEAST_TOKEN_LENGTH:
            raise WeakTokenError(f"the token for HTTP has {len(self.token)} characters; it needs at least 16")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorOptions:
    """The arguments of `Coordinator`, which describes them.

    Raises `NotLoopbackError` and `BadClusterError`.
    """

    topics: Mapping[str, int] = field(default_factory=dict)
    brokers: int = 1
    racks: Sequence[str] = ()
    host: str = "127.0.0.1"
    port: int = 0
    allow_remote: bool = False
    advertised_host: str | None = None
    advertised_port: int | None = None
    settings: BrokerSettings = field(default_factory=BrokerSettings)
    limits: ServerLimits = field(default_factory=ServerLimits)
    security: SecurityOptions | None = None
    http: HttpOptions | None = None
    data_dir: str | PathLike[str] | None = None
    accept_data_loss: bool = False

    def __post_init__(self) -> None:
        if not self.allow_remote and not _is_loopback(self.host):
            raise NotLoopbackError(
                f"other machines can reach {self.host!r} without authentication; to allow that, pass allow_remote=True"
            )
        if not self.advertised_host and _is_every_address(self.host):
            raise BadClusterError(
                f"{self.host!r} means every address of this machine, and clients cannot connect to it: "
                "set the host that they connect to (advertised_host, --advertise)"
            )
        for first in (self.port, self.advertised_port or 0):
            if first and not 0 < first <= _LAST_PORT + 1 - self.brokers:
                raise BadClusterError(
                    f"{self.brokers} brokers from port {first} on: ports range from 1 to {_LAST_PORT}; start lower, "
                    "or use 0 for free ports"
                )

    def advertised(self, index: int, host: str, port: int) -> tuple[str, int]:
        """Return the address that clients get of a broker that listens on this one."""
        its_port = self.advertised_port + index if self.advertised_port else port
        return self.advertised_host or host, its_port


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
