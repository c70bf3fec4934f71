"""The server's half of each SASL mechanism.

Clients get Kafka's error messages, which do not say why a login failed.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from loadwise.coordinator.errors import (
    BadCredentialsError,
    LoginRefusedError,
    MissingLibraryError,
    UnansweredLoginError,
)
from loadwise.coordinator.security.tokens import TokenValidator, unsecured
from loadwise.coordinator.security.users import SCRAM_HASHES, Users
from loadwise.installation import pip_install


class Mechanism(Protocol):
    """One login in progress."""

    user: str | None
    """The client's name; None before the login."""
    expires_ms: int | None
    """When the login expires; None: never."""

    def evaluate(self, token: bytes, now_ms: int) -> bytes:
        """Handle the client's next bytes and return the response. Raises `LoginRefusedError`."""


class Plain:
    """PLAIN (RFC 4616): Kafka's ``PlainSaslServer``."""

    def __init__(self, users: Users) -> None:
        self.user: str | None = None
        self.expires_ms: int | None = None
        self._users = users

    def evaluate(self, token: bytes, now_ms: int) -> bytes:  # noqa: ARG002
        """Parse authorization id, name and password, separated by NUL."""
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
        self.expires_ms: int | None = None
        self._name: str | None = None
        self._users = users
        self._mechanism = mechanism
        self._server: Any = _scramp().ScramMechanism(mechanism).make_server(self._credential)

    def evaluate(self, token: bytes, now_ms: int) -> bytes:  # noqa: ARG002
        """Handle the client's first message, then its final one."""
        try:
            text = token.decode()
            if self._name is None:
                if not text.startswith("n,"):  # not even channel binding that is only supported ("y")
                    raise BadCredentialsError
                self._server.set_client_first(text)
                first: str = self._server.get_server_first()
                return first.encode()
            self._server.set_client_final(text)
            final: str = self._server.get_server_final()
        except (UnicodeDecodeError, _scramp().ScramException) as problem:
            raise BadCredentialsError from problem
        self.user = self._name
        return final.encode()

    def _credential(self, name: str) -> tuple[bytes, bytes, bytes, int]:
        credential = self._users.scram(name, self._mechanism)
        if credential is None:
            raise BadCredentialsError
        self._name = name
        return credential.salt, credential.stored_key, credential.server_key, credential.iterations


class OAuthBearer:
    """OAUTHBEARER (RFC 7628): Kafka's ``OAuthBearerSaslServer``. Extensions are accepted and ignored."""

    def __init__(self, validate: TokenValidator | None) -> None:
        self.user: str | None = None
        self.expires_ms: int | None = None
        self._validate = validate
        self._told: str | None = None

    def evaluate(self, token: bytes, now_ms: int) -> bytes:
        """Handle the client's token.

        An invalid token gets an error response; the login fails when the client has read it.
        """
        if token == b"\x01" and self._told is not None:
            raise LoginRefusedError(self._told)
        self._told = None
        message = _FIRST_MESSAGE.fullmatch(token.decode("utf-8", "replace"))
        pairs = {} if message is None else dict(pair.split("=", 1) for pair in message["pairs"].split("\x01") if pair)
        auth = _AUTH.fullmatch(pairs.get("auth", ""))
        if message is None or auth is None:
            raise BadCredentialsError
        scheme, value = auth.groups()
        if scheme.lower() != "bearer":
            raise UnansweredLoginError(f"a client used the scheme {scheme} instead of a bearer token")
        found = unsecured(value, now_ms) if self._validate is None else self._validate(value)
        if found is None:
            self._told = '{"status":"invalid_token"}'
            return self._told.encode()
        authorization_id = message["authorization_id"]
        if authorization_id is not None and authorization_id != found.user:
            raise LoginRefusedError(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different "
                f"from the token's principal name ({found.user})"
            )
        self.user, self.expires_ms = found
        return b""


_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIR = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_FIRST_MESSAGE = re.compile(rf"n,(?:a=(?P<authorization_id>{_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01")
_AUTH = re.compile(r"([a-zA-Z0-9_]+) +([-_~+/.a-zA-Z0-9]+=*)")
OAUTHBEARER = "OAUTHBEARER"
PASSWORD_MECHANISMS = ("PLAIN", *SCRAM_HASHES)
"""The mechanisms with passwords."""


def new_mechanism(name: str, users: Users, validate: TokenValidator | None) -> Mechanism:
    """Return the server's half of a mechanism; ``validate`` None accepts unsigned tokens."""
    if name == OAUTHBEARER:
        return OAuthBearer(validate)
    return Plain(users) if name == "PLAIN" else Scram(users, name)


def _scramp() -> Any:
    # Imported on demand, because most coordinators have no users.
    try:
        import scramp  # noqa: PLC0415
    except ImportError as missing:
        raise MissingLibraryError(
            f"SCRAM needs scramp, which is not installed; get it with: {pip_install('coordinator')}"
        ) from missing
    return scramp
