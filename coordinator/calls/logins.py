"""The login of a connection, as the kernel sees it; `loadwise.coordinator.security` has the mechanisms."""

from __future__ import annotations

import ssl
from enum import Enum, auto
from typing import Protocol

from loadwise.coordinator.calls.rights import Authorizing

MAX_TOKEN_BYTES = 524_288
"""Largest request before the login (sasl.server.max.receive.size)."""


class Stage(Enum):
    """A stage of a login."""

    START = auto()
    TOLD_VERSIONS = auto()
    TOKENS = auto()
    RAW_TOKENS = auto()
    OTHER_MECHANISM = auto()
    """The client logs in again with another mechanism; its connection closes at the next request."""
    DONE = auto()


class Login(Protocol):
    """The login of one connection."""

    stage: Stage
    user: str | None
    """The client's name; None before the login."""

    def expects(self, api: str, now_ms: int) -> bool:
        """Return whether a request of this API is allowed now."""

    def told_versions(self) -> None:
        """Note that ApiVersions was answered; it is answered once before the login."""

    def evaluate(self, token: bytes, now_ms: int) -> bytes:
        """Handle the client's next token and return the response. Raises `LoginRefusedError`."""


class ListenerCertificates(Protocol):
    """The certificates of a listener; `loadwise.coordinator.TlsFiles` implements it."""

    def context(self) -> ssl.SSLContext:
        """Return them for the event loop."""


class SecurityOptions(Protocol):
    """What a listener requires of clients; `loadwise.coordinator.Security` implements it."""

    @property
    def tls(self) -> ListenerCertificates | None:
        """Return the certificates; None without TLS."""

    @property
    def authorization(self) -> Authorizing | None:
        """Return what clients may do; None: everything."""
