"""A member's reports to the demo, one JSON object a line on its output, and the demo's orders on its input."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TypeAlias


class Order(StrEnum):
    """The demo's orders to a member, a line each; the end of the input means `STOP`, so that no member is orphaned."""

    JOIN = "join"
    """Join the group, take part in rebalances, and process nothing yet."""
    GO = "go"
    """Process records from now on."""
    STOP = "stop"
    """Commit, leave the group and exit."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The process is up, all imports are done: it waits for the order to join."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """What the member owns has changed."""

    partitions: list[int]
    """All partitions that it owns now, ascending."""


@dataclass(frozen=True, slots=True)
class Processed:
    """What the member has processed since its last report."""

    ranges: list[list[int]]
    """``[partition, start, stop]`` each: the offsets from start up to and without stop."""


@dataclass(frozen=True, slots=True)
class Generation:
    """The partitions are those of a new generation, changed or not."""

    generation: int


Message: TypeAlias = Ready | Assigned | Processed | Generation

_KINDS: dict[str, type[Message]] = {kind.__name__: kind for kind in (Ready, Assigned, Processed, Generation)}


def encode(message: Message) -> str:
    """One line, without its end."""
    return json.dumps({"kind": type(message).__name__, **asdict(message)}, separators=(",", ":"))


def decode(line: str) -> Message:
    """The message on a line. Raises ValueError where it is none of ours."""
    fields = json.loads(line)
    try:
        return _KINDS[fields.pop("kind")](**fields)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a message of a member: {line!r}") from error
