"""kafka-python's decoders of requests, made safe against a peer that means harm.

kafka-python generates the source of a decoder for each message and version. Made for what brokers send, it spends time
that grows with the square of the message in two places: 200 kB of 0xff where a length should stand took it 9 s, since
the number only ends when the bytes do, and every struct with a tagged field copies the whole rest of the message. So we
take its source, give both a bound, and compile that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from kafka.protocol.schemas.fields.codegen import CodegenContext

Decoder: TypeAlias = Callable[[memoryview, int], tuple[Any, int]]
"""From bytes and a position to the decoded struct and the position after it."""

_VARINT_STEP = re.compile(r"^( *)(_sh\d+) \+= 7$", re.MULTILINE)
_VARINT_BOUND = r"\1\2 += 7\n\1if \2 > 28: raise ValueError('a variable-length integer is longer than 5 bytes')"
_REST_COPIED = "_BytesIO(bytes(data[pos:]))"
_REST_VIEWED = "_TaggedBytes(data[pos:])"


class TaggedBytes:
    """The rest of a message from a tagged field on, read like a file; not copied as a whole, nor read past its end."""

    __slots__ = ("_position", "_view")

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._position = 0

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes. Raises ValueError if there are fewer."""
        end = self._position + size
        if size < 0 or end > len(self._view):
            raise ValueError(f"{size} bytes announced, {len(self._view) - self._position} left")
        data = bytes(self._view[self._position : end])
        self._position = end
        return data

    def tell(self) -> int:
        """How many bytes were read."""
        return self._position


@cache
def decoder(request: Any, version: int) -> Decoder:
    """The decoder of a request class's body in a version; made once.

    What it raises for bytes that do not parse is of many kinds; `loadwise.protocol.messages` makes them one.
    """
    struct = request._struct
    flexible = request.flexible_version_q(version)
    context = CodegenContext()
    context.lines.append("def decode(data, pos):")
    struct.emit_decode_from(context, "obj", "    ", version=version, compact=flexible, tagged=flexible)
    context.emit("    ", "return obj, pos")
    source = _VARINT_STEP.sub(_VARINT_BOUND, context.source()).replace(_REST_COPIED, _REST_VIEWED)
    names = {
        # The outermost class is there as a weak reference, which cannot be instantiated.
        name: request if value is struct.data_class else value
        for name, value in context.globs.items()
    }
    names["_TaggedBytes"] = TaggedBytes
    exec(compile(source, f"<{request.name} v{version}>", "exec"), names)  # noqa: S102  (kafka-python's own way)
    made: Decoder = names["decode"]
    return made
