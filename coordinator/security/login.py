"""The login of one connection: the allowed requests at each stage, and the client's name.

Mirrors Kafka's ``SaslServerAuthenticator``::

    START -> (ApiVersions) -> TOLD_VERSIONS -> (SaslHandshake) -> TOKENS or RAW_TOKENS -> DONE
      └──────────────────── (SaslHandshake) ─────────────────────────┘

A client must log in again as the same user, with the same mechanism, before its session ends
(KIP-368). That is when its token expires, or after ``connections.max.reauth.ms``. With SaslHandshake v0, tokens come as
bytes with their size, without a Kafka request around them.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadwise.coordinator.calls.logins import Stage
from loadwise.coordinator.errors import BadCredentialsError, LoginRefusedError, UnansweredLoginError
from loadwise.coordinator.security.mechanisms import Mechanism, new_mechanism
from loadwise.coordinator.security.tokens import TokenValidator
from loadwise.coordinator.security.users import Users

_RAW = 0
_AGAIN_AFTER_MS = 1000
_LONGEST_MS = (2**63 - 1) // 10**6
"""Kafka counts a session in nanoseconds, fails on a longer one, and closes the connection."""


_EXPECTED = {
    Stage.START: {"ApiVersions", "SaslHandshake"},
    Stage.TOLD_VERSIONS: {"SaslHandshake"},
    Stage.TOKENS: {"SaslAuthenticate"},
}


class SaslLogin:
    """The login of one connection."""

    def __init__(
        self,
        users: Users,
        mechanisms: Sequence[str],
        validate: TokenValidator | None = None,
        max_session_ms: int = 0,
    ) -> None:
        self.mechanisms = mechanisms
        """The offered mechanisms."""
        self.stage = Stage.START
        self.user: str | None = None
        """The client's name; None before the login."""
        self.expires_ms: int | None = None
        """When the client must have logged in again; None: never."""
        self._users = users
        self._validate = validate
        self._max_session_ms = max_session_ms
        self._name = ""
        self._mechanism: Mechanism | None = None
        self._began_again_ms: int | None = None

    @classmethod
    def by_certificate(cls, name: str) -> SaslLogin:
        """Return the finished login of a client that its certificate identifies."""
        login = cls(Users({}, ()), ())
        login.user = name
        login.stage = Stage.DONE
        return login

    def expects(self, api: str, now_ms: int) -> bool:
        """Return whether a request of this API is allowed now."""
        if self.stage is Stage.DONE:
            is_over = self.expires_ms is not None and now_ms > self.expires_ms
            return not is_over or (api == "SaslHandshake" and self.may_begin(now_ms))
        return api in _EXPECTED.get(self.stage, ())

    def told_versions(self) -> None:
        """Note that ApiVersions was answered; it is answered once before the login."""
        if self.stage is Stage.START:
            self.stage = Stage.TOLD_VERSIONS

    def may_begin(self, now_ms: int) -> bool:
        """Return whether the client may log in, or log in again (KIP-368).

        Repeated logins need a session that ends, and are limited to one per second.
        """
        if self.stage is not Stage.DONE:
            return True
        return self.expires_ms is not None and (
            self._began_again_ms is None or now_ms - self._began_again_ms >= _AGAIN_AFTER_MS
        )

    def choose(self, mechanism: str, version: int, now_ms: int) -> None:
        """Start the login with this mechanism; ``version`` is the handshake's.

        Raises `LoginRefusedError`.
        """
        if self.stage is Stage.DONE:
            self._began_again_ms = now_ms
        if mechanism not in self.mechanisms:
            refusal = LoginRefusedError if self.user is None else UnansweredLoginError
            raise refusal(f"Unsupported SASL mechanism {mechanism}")
        if self.user is not None and mechanism != self._name:
            self.stage = Stage.OTHER_MECHANISM
            return
        self._name = mechanism
        self._mechanism = new_mechanism(mechanism, self._users, self._validate)
        self.stage = Stage.RAW_TOKENS if version == _RAW else Stage.TOKENS

    def evaluate(self, token: bytes, now_ms: int) -> bytes:
        """Handle the client's next token and return the response.

        Raises `LoginRefusedError`, and `UnansweredLoginError` where Kafka closes the connection.
        """
        assert self._mechanism is not None
        try:
            answer = self._mechanism.evaluate(token, now_ms)
        except BadCredentialsError as problem:
            again = "" if self.user is None else "re-"
            raise LoginRefusedError(
                f"Authentication failed during {again}authentication due to invalid credentials "
                f"with SASL mechanism {self._name}"
            ) from problem
        user = self._mechanism.user
        if user is not None:
            if self.user is not None and user != self.user:
                raise LoginRefusedError(
                    f"Cannot change principals during re-authentication from User.{self.user}: User.{user}"
                )
            ends_ms = [] if self._mechanism.expires_ms is None else [self._mechanism.expires_ms]
            if self._max_session_ms:
                ends_ms.append(now_ms + self._max_session_ms)
            self.expires_ms = min(ends_ms, default=None)
            if self.expires_ms is not None and self.expires_ms - now_ms > _LONGEST_MS:
                raise UnansweredLoginError(f"the token of {user} expires in more than 292 years")
            self.user = user
            self._mechanism = None
            self.stage = Stage.DONE
        return answer

    def session_lifetime_ms(self, now_ms: int) -> int:
        """Return how long the session lasts; 0: forever, or before the login."""
        if self.stage is not Stage.DONE or self.expires_ms is None:
            return 0
        return max(self.expires_ms - now_ms, 0)
