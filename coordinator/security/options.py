"""`Security`: how clients log in, for ``Coordinator(security=...)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from loadwise.coordinator.calls.rights import Authorizing
from loadwise.coordinator.errors import BadSecurityError
from loadwise.coordinator.security.config_names import MECHANISMS
from loadwise.coordinator.security.mechanisms import PASSWORD_MECHANISMS
from loadwise.coordinator.security.principal_rules import DEFAULT, principal_rules
from loadwise.coordinator.security.tls import TlsFiles
from loadwise.coordinator.security.tokens import TokenValidator

Protocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
"""What Kafka calls ``security.protocol``."""

_PROTOCOLS = get_args(Protocol)


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """What every listener requires of clients. Kafka's names are in brackets.

    Raises `BadSecurityError` if a field is not valid.
    """

    protocol: Protocol = "SASL_PLAINTEXT"
    """The security protocol of clients (security.protocol)."""
    mechanisms: Sequence[str] = PASSWORD_MECHANISMS
    """The enabled SASL mechanisms (sasl.enabled.mechanisms); OAUTHBEARER is also available."""
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Passwords by user, for the mechanisms with passwords. An administrator can add SCRAM users later."""

    validate_token: TokenValidator | None = None
    """Validates OAUTHBEARER tokens; None accepts every token, even an unsigned one."""
    max_session_ms: int = 0
    """How long a login is valid; 0: forever (connections.max.reauth.ms)."""
    tls: TlsFiles | None = None
    """The certificates, for SSL and SASL_SSL."""
    principal_mapping_rules: str = DEFAULT
    """Derives names from the subjects of client certificates (ssl.principal.mapping.rules)."""
    authorization: Authorizing | None = None
    """What clients may do, an `Authorization`; None: everything."""

    def __post_init__(self) -> None:
        if self.protocol not in _PROTOCOLS:
            raise BadSecurityError(f"there is no protocol {self.protocol!r}; use one of {', '.join(_PROTOCOLS)}")
        if self.protocol.endswith("SSL") != (self.tls is not None):
            raise BadSecurityError("SSL and SASL_SSL need tls=TlsFiles(...), and other protocols must not have it")
        if isinstance(self.mechanisms, str):
            raise BadSecurityError(
                f"mechanisms is {self.mechanisms!r}; it must be a list of names, such as [{self.mechanisms!r}]"
            )
        unknown = [name for name in self.mechanisms if name not in MECHANISMS]
        if unknown or not self.mechanisms:
            raise BadSecurityError(
                f"clients can log in with {', '.join(MECHANISMS)}, not with {', '.join(unknown) or 'nothing'}"
            )
        principal_rules(self.principal_mapping_rules)
        if self.max_session_ms < 0:
            raise BadSecurityError(f"max_session_ms is {self.max_session_ms}; it must be 0 or more milliseconds")
        nameless = [name for name, password in self.users.items() if not name or not password]
        if nameless:
            raise BadSecurityError(f"the user {nameless[0]!r} needs a name and a password")

    @property
    def asks_for_login(self) -> bool:
        """Return whether clients must log in."""
        return self.protocol.startswith("SASL_")
