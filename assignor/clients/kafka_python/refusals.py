"""The errors of a login or of TLS that is refused."""

from __future__ import annotations

from kafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)

REFUSALS = (IllegalSaslStateError, SaslAuthenticationFailedError, UnsupportedSaslMechanismError)
"""How a login by SASL is refused."""


class TlsRefusedError(KafkaConnectionError):
    """The client or the broker refuses the other's certificate, or one of them does not speak TLS."""

    retriable = False
