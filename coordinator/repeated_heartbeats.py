"""Heartbeats of classic groups that a connection repeats: they are recognised by their bytes, and not decoded again.

Between two rebalances a member sends the same heartbeat again and again; only its correlation id changes. What is kept
of the last one is what it asked, not what was answered: its group is asked each time.
"""

from __future__ import annotations

from loadwise.protocol.messages import Request, encode_response
from loadwise.protocol.structs import struct_class

_CORRELATION_ID = slice(4, 8)
"""Where requests and, after their size, responses have it."""
_LONGEST_BYTES = 1024
"""Longer ones are not kept: connections are many, and bytes behind a request's last field are read over."""


class RepeatedHeartbeat:
    """The last heartbeat that came by a connection, and the answer that it gets while all is well."""

    def __init__(self, frame: bytes, request: Request) -> None:
        body = request.body
        self.group_id: str = body.group_id
        self.member_id: str = body.member_id
        self.instance_id: str | None = body.group_instance_id
        self.generation: int = body.generation_id
        self._size = len(frame)
        self._head, self._tail = _around_the_id(frame)
        well = struct_class(request.api.response)(version=request.version, throttle_time_ms=0, error_code=0)
        self._answer_head, self._answer_tail = _around_the_id(encode_response(well, 0))

    @classmethod
    def of(cls, frame: bytes, request: Request) -> RepeatedHeartbeat | None:
        """What is to be kept of a request: None unless it is a heartbeat, and of the length that heartbeats have."""
        return cls(frame, request) if request.api.name == "Heartbeat" and len(frame) <= _LONGEST_BYTES else None

    def is_repeated_by(self, frame: bytes) -> bool:
        """Whether a request is this heartbeat again, under whatever correlation id."""
        return len(frame) == self._size and frame.endswith(self._tail) and frame.startswith(self._head)

    def answer_to(self, frame: bytes) -> bytes:
        """The whole answer to a request that repeats it, where there is no error."""
        return self._answer_head + frame[_CORRELATION_ID] + self._answer_tail


def _around_the_id(data: bytes) -> tuple[bytes, bytes]:
    return data[: _CORRELATION_ID.start], data[_CORRELATION_ID.stop :]
