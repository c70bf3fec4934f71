"""What clients need to be let in: `Security`, which ``Coordinator(security=...)`` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from loadwise.coordinator.authorization.options import Authorization
from loadwise.coordinator.errors import BadSecurityError
from loadwise.coordinator.security.mechanisms import MECHANISMS, PASSWORD_MECHANISMS
from loadwise.coordinator.security.principal_rules import DEFAULT, principal_rules
from loadwise.coordinator.security.tls import Tls
from loadwise.coordinator.security.tokens import TokenValidator

Protocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
"""What Kafka calls ``security.protocol``."""

_PROTOCOLS = get_args(Protocol)


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """What every listener asks of its clients. The names in brackets are those of Kafka's settings.

    Raises `BadSecurityError` for what cannot be.
    """

    protocol: Protocol = "SASL_PLAINTEXT"
    """What clients have to set (security.protocol)."""
    mechanisms: Sequence[str] = PASSWORD_MECHANISMS
    """The mechanisms that clients may log in with (sasl.enabled.mechanisms); OAUTHBEARER is one more."""
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Passwords by user, for every mechanism that has some. An administrator can add users to SCRAM meanwhile."""

    validate_token: TokenValidator | None = None
    """Reads the tokens of OAUTHBEARER; None believes every token, also such as nobody has signed."""
    max_session_ms: int = 0
    """How long a login holds, until the client has to log in again; 0: for ever (connections.max.reauth.ms)."""
    tls: Tls | None = None
    """The certificates, for SSL and SASL_SSL."""
    principal_mapping_rules: str = DEFAULT
    """How clients are called that show a certificate over SSL (ssl.principal.mapping.rules)."""
    authorization: Authorization | None = None
    """What each client may do; None: everything."""

    def __post_init__(self) -> None:
        if self.protocol not in _PROTOCOLS:
            raise BadSecurityError(f"there is no protocol {self.protocol!r}; there are {', '.join(_PROTOCOLS)}")
        if self.protocol.endswith("SSL") != (self.tls is not None):
            raise BadSecurityError(
                "tls=Tls(...), the certificates, belong to the protocols SSL and SASL_SSL, and only to them"
            )
        unknown = [name for name in self.mechanisms if name not in MECHANISMS]
        if unknown or not self.mechanisms:
            raise BadSecurityError(
                f"clients can log in with {', '.join(MECHANISMS)}, and not with {', '.join(unknown) or 'nothing'}"
            )
        principal_rules(self.principal_mapping_rules)
        if self.max_session_ms < 0:
            raise BadSecurityError(f"max_session_ms is {self.max_session_ms}; it takes 0 or more milliseconds")
        nameless = [name for name, password in self.users.items() if not name or not password]
        if nameless:
            raise BadSecurityError(f"the user {nameless[0]!r} needs a name and a password that are not empty")

    @property
    def asks_for_login(self) -> bool:
        """Whether clients have to log in."""
        return self.protocol.startswith("SASL_")
