"""The server's half of each SASL mechanism: bytes of the client in, bytes for it out, until it is known who it is.

Errors are worded as Kafka words them to clients. They tell nothing of why a user was refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from loadwise.coordinator.errors import LoginRefusedError, MissingLibraryError
from loadwise.coordinator.security.users import SCRAM_HASHES, Users
from loadwise.installation import pip_install


class Mechanism(Protocol):
    """One login under way."""

    user: str | None
    """Who it is; None until that is known."""

    def evaluate(self, token: bytes) -> bytes:
        """Take the client's next bytes, and answer with ours. Raises `LoginRefusedError`."""


class Plain:
    """PLAIN (RFC 4616): Kafka's ``PlainSaslServer``."""

    def __init__(self, users: Users) -> None:
        self.user: str | None = None
        self._users = users

    def evaluate(self, token: bytes) -> bytes:
        """Take authorization id, name and password, divided by NUL."""
        parts = token.decode("utf-8", "replace").split("\0", 3)
        if len(parts) != 3:
            raise LoginRefusedError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, name, password = parts
        for what, value in (("username", name), ("password", password)):
            if not value:
                raise LoginRefusedError(f"Authentication failed: {what} not specified")
        if not self._users.has_password(name, password):
            raise LoginRefusedError("Authentication failed: Invalid username or password")
        if authorization_id not in {"", name}:
            raise LoginRefusedError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.user = name
        return b""


class Scram:
    """SCRAM (RFC 5802), by the library scramp: Kafka's ``ScramSaslServer``, without authorization ids."""

    def __init__(self, users: Users, mechanism: str) -> None:
        self.user: str | None = None
        self._name: str | None = None
        self._users = users
        self._mechanism = mechanism
        self._server: Any = _scramp().ScramMechanism(mechanism).make_server(self._credential)

    def evaluate(self, token: bytes) -> bytes:
        """Take the client's first message, then its final one."""
        try:
            text = token.decode()
            if self._name is None:
                if not text.startswith("n,"):  # not even a client that would bind the channel if Kafka did ("y")
                    raise LoginRefusedError(_refusal(self._mechanism))
                self._server.set_client_first(text)
                first: str = self._server.get_server_first()
                return first.encode()
            self._server.set_client_final(text)
            final: str = self._server.get_server_final()
        except (UnicodeDecodeError, _scramp().ScramException) as problem:
            raise LoginRefusedError(_refusal(self._mechanism)) from problem
        self.user = self._name
        return final.encode()

    def _credential(self, name: str) -> tuple[bytes, bytes, bytes, int]:
        credential = self._users.scram(name, self._mechanism)
        if credential is None:
            raise LoginRefusedError(_refusal(self._mechanism))
        self._name = name
        return credential.salt, credential.stored_key, credential.server_key, credential.iterations


MECHANISMS: Mapping[str, Callable[[Users], Mechanism]] = {
    "PLAIN": Plain,
    **{name: partial(Scram, mechanism=name) for name in SCRAM_HASHES},
}
"""What makes the server's half of each mechanism, by its name."""


def _refusal(mechanism: str) -> str:
    return f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"


def _scramp() -> Any:
    # When it is needed: most coordinators have no users.
    try:
        import scramp  # noqa: PLC0415
    except ImportError as missing:
        raise MissingLibraryError(
            f"logging in with SCRAM is built on scramp, which is not installed: {pip_install('coordinator')}"
        ) from missing
    return scramp
