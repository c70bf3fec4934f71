"""Requests from bytes, responses to bytes: the server's half of Kafka's request protocol.

Decoders and encoders are generated from the schemas, one for each API and version at its first use
(`loadwise.protocol.decoding`, `loadwise.protocol.encoding`). The tests compare them with kafka-python's codec, byte for
byte. The header of ApiVersions responses is always v0 (KIP-511).

Measured on one core of a busy machine: 3 µs to read a Heartbeat v4 with its header, and 1 µs to write its response.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

from loadwise.protocol import kafka_messages
from loadwise.protocol.decoding import decoder, decoder_in_turns, skip_tags
from loadwise.protocol.encoding import Encoder, encoder, encoder_in_turns
from loadwise.protocol.errors import RequestError, TooManyElementsError, UnknownApiError, UnsupportedVersionError
from loadwise.protocol.schemas import MessageSchema, key_and_versions
from loadwise.protocol.structs import Struct

_REQUEST = struct.Struct(">hhih")
_RESPONSE = struct.Struct(">ii")
_API_VERSIONS = 18


@dataclass(frozen=True)
class Api:
    """One API that is served, with the versions that are advertised. Its messages are made when they are needed."""

    name: str
    """Kafka's name of the API, as ``JoinGroup``."""
    key: int
    """Kafka's API key."""
    min_version: int
    max_version: int

    @classmethod
    def of(cls, name: str, *, max_version: int | None = None) -> Api:
        """Serve an API from the oldest version that Kafka 4 knows to ``max_version`` (default: the newest known)."""
        key, versions = key_and_versions(f"{name}Request")
        newest = versions[-1]
        return cls(name, key, versions[0], newest if max_version is None else min(newest, max_version))

    @cached_property
    def request(self) -> Any:
        """The class of its requests, of `loadwise.protocol.kafka_messages`."""
        return getattr(kafka_messages, f"{self.name}Request")

    @cached_property
    def response(self) -> Any:
        """The class of its responses."""
        return getattr(kafka_messages, f"{self.name}Response")


class Request(NamedTuple):
    """A request as it came: the header's fields, and the body as a `loadwise.protocol.structs.Struct`."""

    api: Api
    version: int
    correlation_id: int
    client_id: str | None
    body: Any


def served(apis: Iterable[Api]) -> dict[int, Api]:
    """The registry that `decode_request` wants: API key to API."""
    return {api.key: api for api in apis}


def decode_request(frame: bytes, apis: Mapping[int, Api]) -> Request:
    """Read one frame as a request.

    Raises `UnknownApiError` and `UnsupportedVersionError` for what ``apis`` does not serve, `RequestError` for
    bytes that do not parse, end early, or hold a null where Kafka's schema has none, and `TooManyElementsError` for
    more elements in its arrays than are read at once. Bytes behind are ignored, as Kafka does: librdkafka 2.16 writes 3
    too many where it asks for all topics.
    """
    api, version, correlation_id, client_id, start = request_header(frame, apis)
    try:
        body, _ = decoder(api.request.schema, version)(frame, start)
    except (struct.error, IndexError, ValueError) as problem:
        raise _unreadable(api, version, problem) from problem
    return Request(api, version, correlation_id, client_id, body)


def without_body(frame: bytes, apis: Mapping[int, Api]) -> Request:
    """Read only the header of a request; the fields of its body have their defaults. Raises as `decode_request`."""
    api, version, correlation_id, client_id, _ = request_header(frame, apis)
    return Request(api, version, correlation_id, client_id, api.request())


def request_in_turns(
    frame: bytes, apis: Mapping[int, Api], rows: tuple[str, ...], *, most: int, most_inside: int
) -> Generator[None, None, Request]:
    """Read a request of many elements, with a pause after each; raises as `decode_request`.

    ``most``: how many elements it may have. ``most_inside``: how many of them may be inside one row, and beside the
    rows. ``rows``: the name of the array with the rows, and of an array inside them.
    """
    api, version, correlation_id, client_id, start = request_header(frame, apis)
    try:
        body, _ = yield from decoder_in_turns(api.request.schema, version, rows)(frame, start, most, most_inside)
    except (struct.error, IndexError, ValueError) as problem:
        raise _unreadable(api, version, problem) from problem
    return Request(api, version, correlation_id, client_id, body)


def request_header(frame: bytes, apis: Mapping[int, Api]) -> tuple[Api, int, int, str | None, int]:
    """API, version, correlation id and client id of a frame, and where its body begins.

    Raises `UnknownApiError`, `UnsupportedVersionError` and `RequestError`.
    """
    if len(frame) < _REQUEST.size:
        raise RequestError(f"a request of {len(frame)} bytes is shorter than a request header")
    key, version, correlation_id, client_id_length = _REQUEST.unpack_from(frame)
    api = apis.get(key)
    if api is None:
        raise UnknownApiError(f"API key {key} (version {version}) is not served here")
    if not api.min_version <= version <= api.max_version:
        raise UnsupportedVersionError(
            f"{api.name} v{version} is not served here, only v{api.min_version} to v{api.max_version}",
            api_key=key,
            correlation_id=correlation_id,
        )
    start = _REQUEST.size
    client_id = None
    if client_id_length >= 0:
        start += client_id_length
        if start > len(frame):
            raise RequestError(f"{api.name} v{version} ends early")
        client_id = str(frame[_REQUEST.size : start], "utf-8", "replace")
    if version in api.request.schema.flexible:
        try:
            start = skip_tags(frame, start)[0] if frame[start] else start + 1
        except (IndexError, ValueError) as problem:
            raise _unreadable(api, version, problem) from problem
    return api, version, correlation_id, client_id, start


def _unreadable(api: Api, version: int, problem: Exception) -> RequestError:
    """The error for a request whose decoder raised this one."""
    if isinstance(problem, TooManyElementsError):
        return TooManyElementsError(f"{api.name} v{version} {problem}")
    if isinstance(problem, struct.error | IndexError):
        return RequestError(f"{api.name} v{version} ends early")
    return RequestError(f"{api.name} v{version} {problem}")


def encode_response(response: Struct, version: int, correlation_id: int, *, max_bytes: int = 2**31 - 1) -> bytes:
    """A response as a frame with size and header.

    The body of a large Metadata takes milliseconds: keep what `body_in_turns` gives, and use `frame_of`. Raises
    `ValueError`, `struct.error` and others where the wire has no room for a value.
    """
    encode, tags = _codec(response.schema, version)
    pieces = encode(response)
    size = 4 + len(tags) + sum(map(len, pieces))
    if size > max_bytes:
        raise ValueError(f"a response of {size:,} bytes is too large to be sent; {max_bytes:,} is most")
    return b"".join((_RESPONSE.pack(size, correlation_id), tags, *pieces))


def body_in_turns(response: Struct, version: int) -> Generator[None, None, list[bytes]]:
    """A response without its header, in pieces, for `frame_of`; with a pause after each element of an array."""
    return encoder_in_turns(response.schema, version)(response)


def frame_of(body: Sequence[bytes], correlation_id: int, *, flexible: bool) -> list[bytes]:
    """Put size and response header before a body; ``flexible``: whether the response is, in its version."""
    tags = b"\x00" if flexible else b""
    return [_RESPONSE.pack(4 + len(tags) + sum(map(len, body)), correlation_id) + tags, *body]


@cache
def _codec(schema: MessageSchema, version: int) -> tuple[Encoder, bytes]:
    """The encoder of a response, and the tagged fields of its header."""
    has_tags = version in schema.flexible and schema.key != _API_VERSIONS
    return encoder(schema, version), b"\x00" if has_tags else b""
