"""The errors of ``loadwise.protocol``.

::

    ProtocolError              anything this package refuses
    ├── MalformedBytesError    bytes from a peer are not what they claim to be
    └── UnencodableError       a value that the wire has no form for (a string of 40,000 bytes)

Both are ``ValueError`` too, so that code which knows nothing of loadwise catches what it expects.
"""

from __future__ import annotations


class ProtocolError(Exception):
    """Anything that ``loadwise.protocol`` refuses."""


class MalformedBytesError(ProtocolError, ValueError):
    """Bytes from a peer are not what they claim to be; the message says which field at which offset."""


class UnencodableError(ProtocolError, ValueError):
    """A value that the wire has no form for; the message names the value and the limit."""
