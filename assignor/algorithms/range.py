"""Range: consecutive partitions of each topic to consecutive members, topic by topic (Kafka's ``RangeAssignor``).

Of n partitions and m subscribers in Kafka's order, each gets n // m and the first n % m one more. So partition p of two
topics with as many partitions and the same subscribers goes to one member (co-partitioning), and with many small topics
the first members get most.

Where racks are known and matter, members first get partitions of their own rack within these quotas (KIP-881):
`loadwise.assignor.algorithms.range_racks`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadwise.assignor.algorithms.range_racks import assign_by_rack
from loadwise.assignor.model import Assignment, GroupSnapshot, Ints, Owners


@dataclass(frozen=True, slots=True)
class Range:
    """Kafka's ``range``."""

    @property
    def name(self) -> str:
        """``range``."""
        return "range"

    def assign(self, group: GroupSnapshot) -> Assignment:
        """Answer as Java does; O(P + T M), and O(P M) for topics to which racks matter."""
        if not group.size:
            return Assignment(group, np.empty(0, np.int32))
        width = group.subscribers_of_class.sum(axis=1)[group.class_of_topic]
        share, extra = np.divmod(np.diff(group.topic_start), width)
        owner = _ranges(group, share, extra)
        assign_by_rack(group, owner)
        return Assignment(group, owner)


def _ranges(group: GroupSnapshot, share: Ints, extra: Ints) -> Owners:
    eligible = group.subscribers_of_class
    members = np.nonzero(eligible)[1].astype(np.int32)  # all classes' subscribers, one list after the other
    width = eligible.sum(axis=1)
    first = np.cumsum(width) - width
    topic, partition = group.topic_of, group.partition_of
    longer = (extra * (share + 1))[topic]  # partitions below this go to members that get one more
    place = np.where(
        partition < longer,
        partition // (share + 1)[topic],
        extra[topic] + (partition - longer) // np.maximum(share, 1)[topic],
    )
    owner: Owners = members[first[group.class_of] + place]
    return owner
