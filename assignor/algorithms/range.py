"""Range: consecutive partitions of each topic to consecutive members, topic by topic (Kafka's ``RangeAssignor``).

Of n partitions and m subscribers in Kafka's order, each gets n // m and the first n % m one more. So partition p of two
topics with as many partitions and the same subscribers goes to one member (co-partitioning), and with many small topics
the first members get most.

The rack-aware part (KIP-881) is missing: racks are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadwise.assignor.model import Assignment, GroupSnapshot


@dataclass(frozen=True, slots=True)
class Range:
    """Kafka's ``range``."""

    @property
    def name(self) -> str:
        """``range``."""
        return "range"

    def assign(self, group: GroupSnapshot) -> Assignment:
        """Answer as Java does; O(P + T M)."""
        eligible = group.subscribers_of_class
        if not group.size:
            return Assignment(group, np.empty(0, np.int32))
        width = eligible.sum(axis=1)
        members = np.nonzero(eligible)[1].astype(np.int32)  # all classes' subscribers, one list after the other
        first = np.concatenate(([0], np.cumsum(width)[:-1]))
        sizes = np.diff(group.topic_start)
        share, extra = np.divmod(sizes, width[group.class_of_topic])
        topic = group.topic_of
        partition = group.partition_of
        long_part = (extra * (share + 1))[topic]  # rows before this belong to members with one more
        in_long_part = partition < long_part
        place = np.where(
            in_long_part,
            partition // (share + 1)[topic],
            extra[topic] + (partition - long_part) // np.maximum(share, 1)[topic],
        )
        return Assignment(group, members[first[group.class_of] + place])
