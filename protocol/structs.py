"""Messages and the structs inside them as light objects, made from `loadwise.protocol.schemas`.

They have slots and know their defaults: making one takes less than a microsecond.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from loadwise.protocol.schemas import StructSchema


class Struct:
    """One message, or one struct inside a message, by its fields."""

    __slots__: tuple[str, ...] = ()

    schema: ClassVar[Any] = None
    """Its `StructSchema`, of a message its `MessageSchema`."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # its fields can change

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


@cache
def struct_class(schema: StructSchema) -> Any:
    """The light class of a schema; it takes the fields of all versions, each with its default.

    The classes of the structs inside are its attributes, by Kafka's names. A list that is not given is the empty tuple,
    which all objects share.
    """
    fields = schema.fields.values()
    attributes: dict[str, Any] = {"schema": schema}
    attributes |= {field.struct.name: struct_class(field.struct) for field in fields if field.struct is not None}
    defaults = {field.name: field.default for field in fields}
    lines = [
        f"def __init__(self, {', '.join(f'{name}=default_{name}' for name in defaults)}):",
        *(f"    self.{name} = {name}" for name in defaults),
        "    return",
    ]
    values = {f"default_{name}": value for name, value in defaults.items()}
    exec(compile("\n".join(lines), f"<{schema.name}>", "exec"), values)  # noqa: S102  (as dataclasses make theirs)
    return type(schema.name, (Struct,), {**attributes, "__slots__": tuple(defaults), "__init__": values["__init__"]})
