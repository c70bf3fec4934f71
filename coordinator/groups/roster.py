"""Who is in a classic group: members by id and by group instance id, who leads, and what they can agree upon.

Mirrors what Kafka's ``ClassicGroup`` keeps of its members. Nothing here decides when a group moves; that is in
`loadwise.coordinator.groups.classic`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, ValuesView

from loadwise.coordinator.groups.members import ClassicMember
from loadwise.protocol.error_codes import ErrorCode


class Roster(Mapping[str, ClassicMember]):
    """Members by id, in the order in which they came; of the static ones it knows who has which instance id (KIP-345).

    The first to come leads, as does the next in order once the leader has gone.
    """

    def __init__(self, members: Iterable[ClassicMember] = (), leader: str | None = None) -> None:
        self.leader = leader
        self._members: dict[str, ClassicMember] = {}
        self._static_ids: dict[str, str] = {}
        for member in members:
            self.add(member)

    def __getitem__(self, member_id: str) -> ClassicMember:
        return self._members[member_id]

    def __contains__(self, member_id: object) -> bool:
        return member_id in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def values(self) -> ValuesView[ClassicMember]:
        """The members; a dict's own view, since groups are gone through often."""
        return self._members.values()

    def add(self, member: ClassicMember) -> None:
        """Let a member in."""
        self._members[member.member_id] = member
        if member.instance_id is not None:
            self._static_ids[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> ClassicMember | None:
        """Let a member go, and answer who it was."""
        member = self._members.pop(member_id, None)
        if member is None:
            return None
        if member.instance_id is not None:
            del self._static_ids[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self._members), None)
        return member

    def rename(self, member: ClassicMember, member_id: str) -> None:
        """Give a static member that came back its new id; it leads on if it did, and is the last in order now."""
        led = self.leader == member.member_id
        del self._members[member.member_id]
        member.member_id = member_id
        self.add(member)
        if led:
            self.leader = member_id

    def holder(self, instance_id: str) -> str | None:
        """The id of the member that has this group instance id."""
        return self._static_ids.get(instance_id)

    def error(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """What is wrong with who says to be this member. Mirrors ``ClassicGroup.validateMember``."""
        if instance_id is not None:
            current = self._static_ids.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self._members else ErrorCode.UNKNOWN_MEMBER_ID

    @property
    def joined(self) -> int:
        """How many wait with their join for the next generation."""
        return sum(member.join_token is not None for member in self._members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the slowest may take to join again: 0 where there is nobody, else a deadline that lies ahead."""
        return max(1, *(member.rebalance_timeout_ms for member in self._members.values())) if self._members else 0

    def common_protocols(self) -> set[str]:
        """What all members offer; there must be some."""
        offers = ({name for name, _ in member.protocols} for member in self._members.values())
        return set.intersection(*offers)

    def elected_protocol(self) -> str:
        """What most members prefer of what all of them offer."""
        candidates = self.common_protocols()
        votes = Counter(member.vote(candidates) for member in self._members.values())
        return max(votes, key=votes.__getitem__)

    def elect_leader_who_joined(self) -> bool:
        """Let somebody lead who has joined, the leader if it has; False if nobody has."""
        assert self.leader is not None
        if self._members[self.leader].join_token is None:
            joined = (member.member_id for member in self._members.values() if member.join_token is not None)
            elected = next(joined, None)
            if elected is None:
                return False
            self.leader = elected
        return True
