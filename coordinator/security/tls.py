"""TLS of the listeners: the broker's certificate, and whether clients must have one."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from loadwise.coordinator.errors import BadSecurityError

_SHORT_NAMES: Mapping[str, str] = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_TOLD = ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "CERTIFICATE_VERIFY_FAILED", "NO_SHARED_CIPHER", "UNSUPPORTED_PROTOCOL")
"""Why handshakes with TLS clients fail, in OpenSSL's words."""
_ESCAPED = re.compile(r'[,+"\\<>;]|^[ #]| $')
_VERIFICATION = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


def subject_name(certificate: Mapping[str, Any]) -> str:
    """Return a certificate's subject as in RFC 2253, such as ``CN=orders,O=shop``.

    The certificate comes from `ssl.SSLSocket.getpeercert`. Kafka uses this name for the client. Attributes that RFC
    2253 does not name have OpenSSL's names.
    """
    return ",".join(
        "+".join(f"{_SHORT_NAMES.get(kind, kind)}={_ESCAPED.sub(_escaped, value)}" for kind, value in parts)
        for parts in reversed(certificate["subject"])
    )


class _Telling(ssl.SSLObject):
    """Lets the peer learn why its handshake failed: its certificate, versions or ciphers.

    OpenSSL writes an alert with the reason when the handshake fails, and event loops drop what is written then. So the
    failure waits until the peer has answered the alert, usually by closing, or until the handshake times out.
    """

    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            super().do_handshake()
        except ssl.SSLError as failure:
            if failure.reason not in _TOLD:
                raise
            self._failure = failure
            raise ssl.SSLWantReadError from failure


def _escaped(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The TLS settings of listeners. Kafka's names are in brackets; all files are PEM."""

    keystore: str | Path
    """The broker's private key and certificates, in one file (ssl.keystore.location, type PEM)."""
    key_password: str | None = field(default=None, repr=False)
    """Password of the private key (ssl.key.password)."""
    truststore: str | Path | None = None
    """Authorities that sign client certificates (ssl.truststore.location, type PEM)."""
    client_auth: Literal["none", "requested", "required"] = "none"
    """Whether clients must have a certificate (ssl.client.auth)."""

    def context(self) -> ssl.SSLContext:
        """Return the SSL context of the listeners. Raises `BadSecurityError` if a file cannot be used."""
        verification = _VERIFICATION.get(self.client_auth)
        if verification is None:
            raise BadSecurityError(f"client_auth is {self.client_auth!r}; it must be one of {', '.join(_VERIFICATION)}")
        if self.client_auth != "none" and self.truststore is None:
            raise BadSecurityError("client certificates need the authorities that sign them: set truststore")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sslobject_class = _Telling
        try:
            context.load_cert_chain(self.keystore, password=self.key_password or "")
        except OSError as problem:
            raise BadSecurityError(f"the keystore {self.keystore} cannot be used: {problem}") from problem
        if self.truststore is not None:
            try:
                context.load_verify_locations(self.truststore)
            except OSError as problem:
                raise BadSecurityError(f"the truststore {self.truststore} cannot be used: {problem}") from problem
        context.verify_mode = verification
        return context
