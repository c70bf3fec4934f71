"""What clients need to be let in: `Security`, which ``Coordinator(security=...)`` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from loadwise.coordinator.authorization.options import Authorization
from loadwise.coordinator.errors import BadSecurityError
from loadwise.coordinator.security.mechanisms import MECHANISMS
from loadwise.coordinator.security.tls import Tls

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
    mechanisms: Sequence[str] = tuple(MECHANISMS)
    """The mechanisms that clients may log in with (sasl.enabled.mechanisms)."""
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Passwords by user, for every mechanism. An administrator can add users to SCRAM while the coordinator runs."""

    tls: Tls | None = None
    """The certificates, for SSL and SASL_SSL."""
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
        nameless = [name for name, password in self.users.items() if not name or not password]
        if nameless:
            raise BadSecurityError(f"the user {nameless[0]!r} needs a name and a password that are not empty")

    @property
    def asks_for_login(self) -> bool:
        """Whether clients have to log in."""
        return self.protocol.startswith("SASL_")
