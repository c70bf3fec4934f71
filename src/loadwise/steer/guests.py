"""The steering members of one process: they own nothing, and carry a plan in their rack ids.

Pure: requests out, answers in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.steering_note import TOPIC_PREFIX, TOPICS
from loadwise.running_group.errors import UnreadableGroupError

ASSIGNOR = "loadwise"
NO_PART = "loadwise-steer"
"""The rack id without a part of a plan; brokers refuse an empty one."""
_LEAVES = -1
_NEVER_MS = 2**31 - 1
_REJOIN = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}
_AGAIN = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}
_REMEDIES = {
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "; allow this user READ on the group",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: f"; allow this user DESCRIBE on the topic prefix {TOPIC_PREFIX}",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "; steering members count towards group.consumer.max.size: raise it",
}

Fields = Mapping[str, Any]
"""The fields of a ConsumerGroupHeartbeatRequest (KIP-848), without the group's id."""


class Said(NamedTuple):
    """What a steering member tells the broker."""

    rack_id: str = NO_PART
    topic: str = TOPICS[0]


@dataclass(slots=True)
class Guest:
    """One steering member: what it is to tell the broker, and what the broker has heard."""

    member_id: str
    epoch: int = 0
    says: Said = field(default_factory=Said)
    heard: Said | None = None
    """None until the broker has answered its join."""

    def heartbeat(self) -> Fields:
        """Return its next heartbeat: what the broker has not heard yet, or all if it joins."""
        says, heard = self.says, self.heard
        fields: dict[str, Any] = {"member_id": self.member_id, "member_epoch": self.epoch}
        if heard is None:
            fields |= {"rebalance_timeout_ms": _NEVER_MS, "server_assignor": ASSIGNOR, "topic_partitions": []}
        if heard is None or heard.rack_id != says.rack_id:
            fields["rack_id"] = says.rack_id
        if heard is None or heard.topic != says.topic:
            fields["subscribed_topic_names"] = [says.topic]
        return fields

    def ask(self) -> None:
        """Make the broker assign again, with the next heartbeat."""
        self.says = self.says._replace(topic=TOPICS[1 - TOPICS.index(self.says.topic)])

    def leaving(self) -> Fields:
        """Return the heartbeat that leaves."""
        return {"member_id": self.member_id, "member_epoch": _LEAVES}

    def answered(self, answer: Any) -> None:
        """Take in the answer to its last heartbeat.

        Raises `UnreadableGroupError` for an error that another heartbeat does not mend.
        """
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.NONE:
            self.epoch, self.heard = answer.member_epoch, self.says
        elif error in _REJOIN:
            self.epoch, self.heard = 0, None
        elif error is ErrorCode.UNSUPPORTED_ASSIGNOR:
            raise UnreadableGroupError(
                f"the broker has no assignor {ASSIGNOR!r}; put loadwise's jar on the class path of all brokers and its"
                " class into group.consumer.assignors"
            )
        elif error not in _AGAIN:
            remedy = _REMEDIES.get(error, "")
            raise UnreadableGroupError(f"the group cannot be joined: {answer.error_message or error.name}{remedy}")


class Guests:
    """The steering members of one process, whose ids begin with the process's name."""

    def __init__(self, process: str) -> None:
        self.process = process
        self.all: list[Guest] = []
        self._numbers = count()

    def __contains__(self, member_id: str) -> bool:
        return process_of(member_id) == self.process

    @property
    def heard(self) -> bool:
        """Whether the broker has heard all that they say."""
        return all(guest.heard == guest.says for guest in self.all)

    def grow(self, number: int) -> None:
        """Have at least this many."""
        while len(self.all) < number:
            self.all.append(Guest(f"{self.process}-{next(self._numbers)}"))

    def carry(self, parts: Sequence[str]) -> None:
        """Carry a plan, with the next heartbeats; guests without a part lose that of an older plan."""
        self.grow(len(parts))
        for number, guest in enumerate(self.all):
            guest.says = guest.says._replace(rack_id=parts[number] if number < len(parts) else NO_PART)


def process_of(member_id: str) -> str:
    """Return the name of the process that a steering member belongs to."""
    return member_id.rpartition("-")[0]
