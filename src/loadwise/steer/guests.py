"""The steering members of one process: they own nothing, and carry a plan in their rack ids.

Pure: requests out, answers in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.steering_note import TOPICS
from loadwise.running_group.errors import UnreadableGroupError

ASSIGNOR = "loadwise"
_NO_PART = "loadwise-steer"
"""The rack id without a part of a plan; brokers refuse an empty one."""
_LEAVES = -1
_NEVER_MS = 2**31 - 1
_REJOIN = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}

Fields = Mapping[str, Any]
"""The fields of a ConsumerGroupHeartbeatRequest (KIP-848), without the group's id."""


@dataclass(slots=True)
class Guest:
    """One steering member."""

    member_id: str
    epoch: int = 0
    rack_id: str = _NO_PART
    topic: str = TOPICS[0]

    def heartbeat(self) -> Fields:
        """Return a heartbeat that changes nothing, or joins."""
        if self.epoch:
            return {"member_id": self.member_id, "member_epoch": self.epoch}
        return {
            "member_id": self.member_id,
            "member_epoch": 0,
            "rack_id": self.rack_id,
            "rebalance_timeout_ms": _NEVER_MS,
            "subscribed_topic_names": [self.topic],
            "server_assignor": ASSIGNOR,
            "topic_partitions": [],
        }

    def carrying(self, rack_id: str) -> Fields:
        """Return the heartbeat that gives it a part of a plan."""
        self.rack_id = rack_id
        return {"rack_id": rack_id, **self.heartbeat()}

    def asking(self) -> Fields:
        """Return the heartbeat that makes the broker assign again."""
        self.topic = TOPICS[1 - TOPICS.index(self.topic)]
        return {"subscribed_topic_names": [self.topic], "rack_id": self.rack_id, **self.heartbeat()}

    def leaving(self) -> Fields:
        """Return the heartbeat that leaves."""
        return {"member_id": self.member_id, "member_epoch": _LEAVES}

    def answered(self, answer: Any) -> bool:
        """Take in an answer; return whether the member is in the group.

        Raises `UnreadableGroupError` for an error that another heartbeat does not mend.
        """
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.NONE:
            self.epoch = answer.member_epoch
        elif error in _REJOIN:
            self.epoch = 0
        elif error is ErrorCode.UNSUPPORTED_ASSIGNOR:
            raise UnreadableGroupError(
                f"the broker has no assignor {ASSIGNOR!r}; put loadwise's jar on the class path of all brokers and its"
                " class into group.consumer.assignors"
            )
        else:
            raise UnreadableGroupError(f"the group cannot be joined: {answer.error_message or error.name}")
        return error is ErrorCode.NONE


class Guests:
    """The steering members of one process, whose ids begin with the process's name."""

    def __init__(self, process: str) -> None:
        self.process = process
        self.all: list[Guest] = []
        self._numbers = count()

    def __contains__(self, member_id: str) -> bool:
        return process_of(member_id) == self.process

    def grow(self, number: int) -> None:
        """Have at least this many."""
        while len(self.all) < number:
            self.all.append(Guest(f"{self.process}-{next(self._numbers)}"))

    def carry(self, parts: Sequence[str]) -> Iterable[tuple[Guest, Fields]]:
        """Yield the heartbeats that carry a plan; guests without a part lose that of an older plan."""
        self.grow(len(parts))
        for number, guest in enumerate(self.all):
            part = parts[number] if number < len(parts) else _NO_PART
            if part != guest.rack_id:
                yield guest, guest.carrying(part)


def process_of(member_id: str) -> str:
    """Return the name of the process that a steering member belongs to."""
    return member_id.rpartition("-")[0]
