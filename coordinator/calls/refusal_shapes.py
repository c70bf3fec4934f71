"""How the response to a request that fails as a whole is made, beside its error.

Mirrors ``getErrorResponse`` of Kafka's request classes. A feature has the `Refused` of its own APIs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadwise.coordinator.calls.call import Call
from loadwise.protocol.error_codes import ErrorCode

_ALL_VERSIONS = range(2**15)


@dataclass(frozen=True, slots=True)
class Rows:
    """A list in the response that has one item for each item of a list in the request.

    Each item repeats the name or id from the request. ``key`` is the field for it if the request's items are not
    structs; a pair means that response and request name the field differently. ``answered`` is a list inside the items
    that stays empty on an error.
    """

    response: str
    request: str
    key: str | tuple[str, str] | None = None
    inner: Rows | None = None
    answered: Rows | None = None
    versions: range = _ALL_VERSIONS
    is_beside: bool = False
    """Whether the error of a whole request is beside the list, whose items can have errors of their own."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What a response has that fails as a whole."""

    rows: Sequence[Rows] = ()
    """Its lists, each in other versions."""
    values: Callable[[Call, ErrorCode], Mapping[str, Any]] = lambda _, __: {}
    """Returns fields whose values are not those that mean "unknown"."""

    def of(self, version: int) -> Rows | None:
        """Return the list in which items are answered one by one; None if the response has none in a version."""
        return next((rows for rows in self.rows if version in rows.versions), None)


PARTITIONS = Rows("partitions", "partitions")
BY_INDEX = Rows("partitions", "partition_indexes", "partition_index")
