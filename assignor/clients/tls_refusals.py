"""Finds a refusal by TLS in the error of a client's connection."""

from __future__ import annotations

import ssl

_LOST_PEER = (ssl.SSLEOFError, ssl.SSLSyscallError, ssl.SSLZeroReturnError)


def tls_refusal(error: BaseException | None) -> ssl.SSLError | None:
    """Return the TLS error that caused an error; None if there is none, or if the peer only went away."""
    while error is not None:
        for each in (error, *error.args):
            if isinstance(each, ssl.SSLError) and not isinstance(each, _LOST_PEER):
                return each
        error = error.__cause__ or error.__context__
    return None
