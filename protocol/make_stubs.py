"""``python -m loadwise.protocol.make_stubs``: writes ``kafka_messages.pyi``, which has the type of each field.

Arrays are sequences, since a message may be given a tuple. What is nullable in any version may be None.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from loadwise.protocol.schemas import Field, MessageSchema, StructSchema, names, schema

FILE = Path(__file__).with_name("kafka_messages.pyi")
_HEAD = """\
# The types of Kafka's messages, made by loadwise.protocol.make_stubs from messages.txt.
from collections.abc import Sequence, Set
from typing import ClassVar, dataclass_transform
from uuid import UUID

from loadwise.protocol.schemas import MessageSchema, StructSchema
from loadwise.protocol.structs import Struct

@dataclass_transform(kw_only_default=True)
class _Struct(Struct):
    schema: ClassVar[StructSchema]

class _Message(_Struct):
    schema: ClassVar[MessageSchema]
"""
_TYPES = {
    "bitfield": "Set[int]", "bool": "bool", "bytes": "bytes", "float64": "float", "records": "bytes", "string": "str",
    "uuid": "UUID",
}  # fmt: skip
_WIDTH = 120
_NULLABLE = {"bitfield", "uuid"}
"""A set of operations that was not asked for, and the id of no topic, are None."""


def text() -> str:
    """What the file has."""
    lines = [_HEAD.rstrip()]
    for name in names():
        lines += ["", *_class(schema(name), name, {})]
    return "\n".join(lines) + "\n"


def _class(struct: StructSchema, path: str, made: dict[StructSchema, str], indent: str = "") -> Iterator[str]:
    """Return the lines of a class. ``made`` has the path of each struct of this message, which several may share."""
    base = "_Message" if isinstance(struct, MessageSchema) else "_Struct"
    fields = struct.fields.values()
    if not fields:
        yield f"{indent}class {struct.name}({base}): ..."
        return
    yield f"{indent}class {struct.name}({base}):"
    inside = f"{indent}    "
    inner = {field.struct: f"{path}.{field.struct.name}" for field in fields if field.struct is not None}
    made |= inner | made
    for each, own_path in inner.items():
        if made[each] == own_path:
            yield from _class(each, own_path, made, inside)
            yield ""
        else:
            yield from _line(inside, each.name, "ClassVar", f"type[{made[each]}]", "")
    for field in fields:
        may_be_none = bool(field.nullable) or (field.kind in _NULLABLE and not field.is_array)
        end = " | None = ..." if may_be_none else " = ..."
        yield from _line(inside, field.name, "Sequence" if field.is_array else "", _type(field, inner, made), end)


def _type(field: Field, inner: dict[StructSchema, str], made: dict[StructSchema, str]) -> str:
    if field.struct is None:
        return _TYPES.get(field.kind, "int")
    return field.struct.name if inner[field.struct] == made[field.struct] else made[field.struct]


def _line(indent: str, name: str, generic: str, found: str, end: str) -> Iterator[str]:
    """Return the lines of an attribute, as ``ruff format`` has them."""
    line = f"{indent}{name}: {f'{generic}[{found}]' if generic else found}{end}"
    if len(line) <= _WIDTH:
        yield line
    else:
        yield from (f"{indent}{name}: {generic}[", f"{indent}    {found}", f"{indent}]{end}")


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
