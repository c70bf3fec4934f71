"""Recognises repeated heartbeats of classic groups by their bytes, without decoding.

Between two rebalances a member's heartbeats differ only in their correlation id. Only the request is stored, not its
answer, because the group decides each time.
"""

from __future__ import annotations

from loadwise.coordinator.apis import heartbeat_12 as heartbeat
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Request, encode_response

_CORRELATION_ID = slice(4, 8)
"""The place of the id in requests, and in responses after their size."""
_LONGEST_BYTES = 1024
"""Longer ones are not stored, because there are many connections, and extra bytes after the last field are ignored."""


class RepeatedHeartbeat:
    """The last heartbeat of a connection, and its answer without an error."""

    def __init__(self, frame: bytes, request: Request) -> None:
        body = request.body
        self.group_id: str = body.group_id
        self.member_id: str = body.member_id
        self.instance_id: str | None = body.group_instance_id
        self.generation: int = body.generation_id
        self._size = len(frame)
        self._head, self._tail = _around_the_id(frame)
        well = encode_response(heartbeat.response(ErrorCode.NONE), request.version, 0)
        self._answer_head, self._answer_tail = _around_the_id(well)

    @classmethod
    def of(cls, frame: bytes, request: Request) -> RepeatedHeartbeat | None:
        """Return the stored form of a heartbeat; None if it is longer than normal ones."""
        return cls(frame, request) if len(frame) <= _LONGEST_BYTES else None

    def is_repeated_by(self, frame: bytes) -> bool:
        """Return whether a request repeats this heartbeat, with any correlation id."""
        return len(frame) == self._size and frame.endswith(self._tail) and frame.startswith(self._head)

    def answer_to(self, frame: bytes) -> bytes:
        """Return the encoded answer to a request that repeats it, without an error."""
        return self._answer_head + frame[_CORRELATION_ID] + self._answer_tail


def _around_the_id(data: bytes) -> tuple[bytes, bytes]:
    return data[: _CORRELATION_ID.start], data[_CORRELATION_ID.stop :]
