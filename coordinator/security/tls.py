"""TLS of the listeners: the broker's certificate, and whether clients have to show one."""

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
"""Why handshakes fail whose peers speak TLS, in OpenSSL's words."""
_ESCAPED = re.compile(r'[,+"\\<>;]|^[ #]| $')
_VERIFICATION = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


def subject_name(certificate: Mapping[str, Any]) -> str:
    """The subject of a certificate, from `ssl.SSLSocket.getpeercert`, as RFC 2253 writes it: ``CN=orders,O=shop``.

    That is the name that Kafka knows the client by. An attribute that RFC 2253 does not name has OpenSSL's name.
    """
    return ",".join(
        "+".join(f"{_SHORT_NAMES.get(kind, kind)}={_ESCAPED.sub(_escaped, value)}" for kind, value in parts)
        for parts in reversed(certificate["subject"])
    )


class _Telling(ssl.SSLObject):
    """Lets the peer learn that its handshake failed for its certificate, or for the versions and ciphers that it knows.

    The reason is an alert that OpenSSL has written when it fails, and event loops drop what is written then. So the
    failure waits until the peer has answered the alert, mostly by closing, or until the time for handshakes is over.
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
class Tls:
    """What listeners with TLS need. The names in brackets are those of Kafka's settings; all files are PEM."""

    keystore: str | Path
    """The broker's private key and its certificates, in one file (ssl.keystore.location, of the type PEM)."""
    key_password: str | None = field(default=None, repr=False)
    """What the private key is encrypted with (ssl.key.password)."""
    truststore: str | Path | None = None
    """The authorities whose certificates of clients are believed (ssl.truststore.location, of the type PEM)."""
    client_auth: Literal["none", "requested", "required"] = "none"
    """Whether clients have to show a certificate (ssl.client.auth)."""

    def context(self) -> ssl.SSLContext:
        """What asyncio listens with. Raises `BadSecurityError` where a file cannot be used."""
        verification = _VERIFICATION.get(self.client_auth)
        if verification is None:
            raise BadSecurityError(f"client_auth is {self.client_auth!r}; it takes {', '.join(_VERIFICATION)}")
        if self.client_auth != "none" and self.truststore is None:
            raise BadSecurityError("clients are to show certificates: give the authorities to believe (truststore)")
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
