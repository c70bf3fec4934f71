"""The errors of ``loadwise.protocol``.

::

    ProtocolError                   base class
    ├── MalformedBytesError         bytes from a peer are not valid
    │   ├── FrameError              a frame's size is negative or above the limit
    │   └── RequestError            a request cannot be read
    │       ├── UnknownApiError          its API key is not served
    │       ├── UnsupportedVersionError  its API is served, but not in this version
    │       └── TooManyElementsError     its arrays have too many elements
    ├── MissingCodecError           records are compressed with a codec that is not installed
    └── UnencodableError            a value cannot be encoded (a string of 40,000 bytes)

All but `MissingCodecError` are ``ValueError`` too, so that code without an import of loadwise can catch
them.
A server closes the connection on `MalformedBytesError`. The exception is an ApiVersions request in an unknown
version, which KIP-511 wants answered.
"""

from __future__ import annotations


class ProtocolError(Exception):
    """The base class of all errors of ``loadwise.protocol``."""


class MalformedBytesError(ProtocolError, ValueError):
    """Bytes from a peer are not valid; the message names the field and its offset."""


class FrameError(MalformedBytesError):
    """A frame's size is negative or above the limit; nothing after it can be read."""


class RequestError(MalformedBytesError):
    """A request cannot be decoded; the message names the API, its version and the problem."""


class UnknownApiError(RequestError):
    """The request's API key is not served."""


class UnsupportedVersionError(RequestError):
    """The request's API is served, but not in this version."""

    def __init__(self, message: str, *, api_key: int, correlation_id: int) -> None:
        super().__init__(message)
        self.api_key = api_key
        self.correlation_id = correlation_id


class TooManyElementsError(RequestError):
    """The arrays of the request have too many elements together."""


class MissingCodecError(ProtocolError, ImportError):
    """Records are compressed with a codec that is not installed; the message names the library."""


class UnencodableError(ProtocolError, ValueError):
    """A value cannot be encoded; the message names the value and the limit."""
