"""The login of one connection: which requests may come when, and who the client is in the end.

Mirrors Kafka's ``SaslServerAuthenticator``::

    START -> (ApiVersions) -> TOLD_VERSIONS -> (SaslHandshake) -> TOKENS or RAW_TOKENS -> DONE
      └──────────────────── (SaslHandshake) ─────────────────────────┘

A client of SaslHandshake v0 sends its tokens as bare bytes with their size, without Kafka's requests around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from loadwise.coordinator.errors import LoginRefusedError
from loadwise.coordinator.security.mechanisms import MECHANISMS, Mechanism
from loadwise.coordinator.security.users import Users

MAX_TOKEN_BYTES = 524_288
"""Largest request before a client is known (sasl.server.max.receive.size)."""

_RAW = 0


class Stage(Enum):
    """How far a login is."""

    START = auto()
    TOLD_VERSIONS = auto()
    TOKENS = auto()
    RAW_TOKENS = auto()
    DONE = auto()


_EXPECTED = {
    Stage.START: {"ApiVersions", "SaslHandshake"},
    Stage.TOLD_VERSIONS: {"SaslHandshake"},
    Stage.TOKENS: {"SaslAuthenticate"},
}


class Login:
    """The login of one connection."""

    def __init__(self, users: Users, mechanisms: Sequence[str]) -> None:
        self.mechanisms = mechanisms
        """Those that are offered."""
        self.stage = Stage.START
        self.user: str | None = None
        """Who the client is; None until that is known."""
        self._users = users
        self._mechanism: Mechanism | None = None

    @classmethod
    def by_certificate(cls, name: str) -> Login:
        """The login of a client that need not log in, since its certificate has told who it is."""
        login = cls(Users({}, ()), ())
        login.user = name
        login.stage = Stage.DONE
        return login

    def expects(self, api: str) -> bool:
        """Whether a request of this API may come now."""
        return self.stage is Stage.DONE or api in _EXPECTED.get(self.stage, ())

    def told_versions(self) -> None:
        """ApiVersions was answered; it is answered once before the login."""
        if self.stage is Stage.START:
            self.stage = Stage.TOLD_VERSIONS

    def choose(self, mechanism: str, version: int) -> None:
        """Begin with this mechanism; ``version`` is that of the handshake. Raises `LoginRefusedError`."""
        if mechanism not in self.mechanisms:
            raise LoginRefusedError(f"Unsupported SASL mechanism {mechanism}")
        self._mechanism = MECHANISMS[mechanism](self._users)
        self.stage = Stage.RAW_TOKENS if version == _RAW else Stage.TOKENS

    def evaluate(self, token: bytes) -> bytes:
        """Take the client's next token, and answer with ours. Raises `LoginRefusedError`."""
        assert self._mechanism is not None
        answer = self._mechanism.evaluate(token)
        if self._mechanism.user is not None:
            self.user = self._mechanism.user
            self._mechanism = None
            self.stage = Stage.DONE
        return answer
