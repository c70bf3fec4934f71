"""Messages and the structs inside them as light objects, made from the schemas that kafka-python ships and from ours.

kafka-python's own objects look every field up in the schema when they are made, which takes longer than all the rest of
a heartbeat. These have slots and know their defaults.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar


class Struct:
    """One message, or one struct inside a message, by its fields. A message has its ``version`` too."""

    __slots__: tuple[str, ...] = ()

    _struct: ClassVar[Any] = None
    """Its schema, as kafka-python reads it."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # its fields can change

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


@cache
def struct_class(schema: Any) -> Any:
    """The light class for one of kafka-python's classes; it takes the fields of all versions, each with its default.

    The classes of the structs inside are its attributes, by the names that kafka-python gives them. A list that is not
    given is the empty tuple, which all objects share.
    """
    fields = schema._struct.fields
    attributes: dict[str, Any] = {"_struct": schema._struct, "schema": schema, "__doc__": schema.__doc__}
    for field in fields.values():
        if field.is_struct() or field.is_struct_array():
            attributes[field.type_str] = struct_class(field.data_class)
    defaults = {name: default_of(field) for name, field in fields.items()}
    if hasattr(schema, "API_KEY"):
        defaults["version"] = None
    lines = [
        f"def __init__(self, {', '.join(f'{name}=default_{name}' for name in defaults)}):",
        *(f"    self.{name} = {name}" for name in defaults),
        "    return",
    ]
    names = {f"default_{name}": value for name, value in defaults.items()}
    exec(compile("\n".join(lines), f"<{schema.__name__}>", "exec"), names)  # noqa: S102  (as dataclasses make theirs)
    return type(schema.__name__, (Struct,), {**attributes, "__slots__": tuple(defaults), "__init__": names["__init__"]})


def default_of(field: Any) -> Any:
    """The value of a field that is not given."""
    try:
        default = field.default
    except NotImplementedError:
        return None  # a struct that may not be null: whoever makes the message gives it
    return () if default == [] else default
