"""A situation: the group that all assignors are put to, wherever it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.load.source import TopicLoads
from loadwise.assignor.model import Assignor, GroupSnapshot, Member
from loadwise.compare.errors import BadInputError


class Uncommitted(StrEnum):
    """Where the members of a group begin to read a partition that has no commit: their ``auto.offset.reset``."""

    EARLIEST = "earliest"
    LATEST = "latest"


class LiveLoad(StrEnum):
    """What is balanced in a running group."""

    LAG = "lag"
    """Records that wait."""
    RATE = "rate"
    """Records that arrive in a second."""
    DEMAND = "demand"
    """Both: the rate, and the lag over the time to drain it in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A group by names: a case file, a table of loads, a running group and a scenario all come to this."""

    about: str
    """One sentence: where it comes from and what is special about it."""
    members: Sequence[Member]
    """Its members, and what they own now."""
    partitions: Mapping[str, int]
    """Topic to number of partitions."""
    load: TopicLoads | None = None
    """Load of each partition; None where nothing is known, and every partition counts as 1."""
    load_unit: str = ""
    """The unit of the loads, as ``records``; empty if unknown."""
    spread: TopicLoads | None = None
    """The loads when producers spread the keys; each assignor then answers with these, too."""
    racks: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    """Racks of the replicas of each partition."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """A short name to show for a member id, such as its client id; a member without one is shown by its id."""
    tuned: Assignor | None = None
    """An algorithm with parameters of its own, to be used in place of the one of its name."""
    earlier: Situation | None = None
    """The same group one rebalance ago. Each assignor answers that first, and its members own what it gave them."""

    def snapshot(self) -> GroupSnapshot:
        """The group as assignors take it. Raises `BadInputError` without members or partitions."""
        try:
            group = GroupSnapshot.of(
                self.members, self.partitions, load=self.load, load_unit=self.load_unit, racks=self.racks
            )
        except BadGroupError as error:
            raise BadInputError(str(error)) from error
        if not group.members:
            raise BadInputError("the group has no members; at least one is needed to assign partitions")
        if not group.size:
            raise BadInputError("there is nothing to assign: no member subscribes to a topic that has partitions")
        return group

    def under(self, assignor: Assignor) -> GroupSnapshot:
        """The group as it comes to an assignor: where there is an earlier situation, with what that one gave then."""
        if self.earlier is None:
            return self.snapshot()
        given = assignor.assign(self.earlier.snapshot()).by_member()
        members = [replace(member, owned=given.get(member.id, {}), generation=1) for member in self.members]
        return replace(self, members=members).snapshot()
