"""Finds why a client and a broker do not agree on TLS or a login, in the error of the client's connection."""

from __future__ import annotations

import ssl

NO_TLS = "it closes the connection in the TLS handshake: does its listener use TLS?"
"""Why a connection fails if `ends_handshake`."""

_LOST_PEER = (ssl.SSLEOFError, ssl.SSLSyscallError, ssl.SSLZeroReturnError)


def tls_refusal(error: BaseException | None) -> ssl.SSLError | None:
    """Return the TLS error that caused an error; None without one, or if the peer only closed the connection."""
    while error is not None:
        for each in (error, *error.args):
            if isinstance(each, ssl.SSLError) and not isinstance(each, _LOST_PEER):
                return each
        error = error.__cause__ or error.__context__
    return None


def ends_handshake(error: BaseException | None) -> bool:
    """Return whether the peer closed the connection during the TLS handshake, as a listener without TLS does."""
    while error is not None:
        if any(isinstance(each, (*_LOST_PEER, ConnectionResetError)) for each in (error, *error.args)):
            return True
        error = error.__cause__ or error.__context__
    return False


def no_login(where: str, security_protocol: str) -> str:
    """Return the error for a login by SASL at a listener without logins, which answers ILLEGAL_SASL_STATE."""
    return f"{where} asks for no login by SASL; use security_protocol={security_protocol.removeprefix('SASL_')}"
