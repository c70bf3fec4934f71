"""Finds nulls where Kafka's schemas forbid them.

kafka-python's decoder reads a length of -1 as None in any field; Kafka's own refuses the request ("non-nullable field
groupId was serialized as null"). Checking here keeps None out of every handler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

_NULL_ON_THE_WIRE = ("string", "bytes", "records")


@dataclass(frozen=True, slots=True)
class NullCheck:
    """What must not be null in one struct of one version."""

    required: tuple[str, ...]
    """Names of fields that must not be None."""
    nested: tuple[tuple[str, NullCheck], ...]
    """Arrays of structs, by the field's name, and what must not be null in their items."""

    def first_null(self, struct: Any) -> str | None:
        """The path of the first forbidden null, as ``topics.partitions.metadata``; None if there is none."""
        for name in self.required:
            if getattr(struct, name) is None:
                return name
        for name, check in self.nested:
            for item in getattr(struct, name) or ():
                if (path := check.first_null(item)) is not None:
                    return f"{name}.{path}"
        return None


@cache
def null_check(request: Any, version: int) -> NullCheck:
    """What must not be null in a request class's version; built once."""
    return _check(request.fields.values(), version)


def _check(fields: Sequence[Any], version: int) -> NullCheck:
    required: list[str] = []
    nested: list[tuple[str, NullCheck]] = []
    for field in fields:
        if not field.for_version_q(version):
            continue
        can_come_as_null = field.is_array() or field.type_str in _NULL_ON_THE_WIRE
        if can_come_as_null and not field.nullable_for_version_q(version):
            required.append(field.name)
        if field.is_struct_array():
            check = _check(field.fields.values(), version)
            if check.required or check.nested:
                nested.append((field.name, check))
    return NullCheck(tuple(required), tuple(nested))
