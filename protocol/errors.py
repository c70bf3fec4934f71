"""The errors of ``loadwise.protocol``.

::

    ProtocolError                   anything this package refuses
    ├── MalformedBytesError         bytes from a peer are not what they claim to be
    │   ├── FrameError              a frame's size is negative or above the limit
    │   └── RequestError            a request cannot be read
    │       ├── UnknownApiError          its API key is not one that is served here
    │       ├── UnsupportedVersionError  its API is served, this version of it is not
    │       └── TooManyElementsError     its arrays have more elements than may be read at once
    ├── MissingCodecError           records are compressed with a codec that is not installed
    └── UnencodableError            a value that the wire has no form for (a string of 40,000 bytes)

All but `MissingCodecError` are ``ValueError`` too, so that code which knows nothing of loadwise catches what it
expects.
A server answers `MalformedBytesError` by closing that one connection, but for an ApiVersions request in a version that
it does not know, which KIP-511 wants answered.
"""

from __future__ import annotations


class ProtocolError(Exception):
    """Anything that ``loadwise.protocol`` refuses."""


class MalformedBytesError(ProtocolError, ValueError):
    """Bytes from a peer are not what they claim to be; the message names the field and its offset."""


class FrameError(MalformedBytesError):
    """A frame announces a size that is negative or above the limit; nothing after it can be read."""


class RequestError(MalformedBytesError):
    """A request cannot be read; the message names the API, its version, and what is wrong."""


class UnknownApiError(RequestError):
    """The request's API key is not one that is served here."""


class UnsupportedVersionError(RequestError):
    """The request's API is served here, but not in this version."""

    def __init__(self, message: str, *, api_key: int, correlation_id: int) -> None:
        super().__init__(message)
        self.api_key = api_key
        self.correlation_id = correlation_id


class TooManyElementsError(RequestError):
    """The request's arrays have more elements together than may be read at once."""


class MissingCodecError(ProtocolError, ImportError):
    """Records are compressed with a codec that is not installed; the message names the library."""


class UnencodableError(ProtocolError, ValueError):
    """A value that the wire has no form for; the message names the value and the limit."""
