"""Range: consecutive partitions of each topic to consecutive members, topic by topic (Kafka's ``RangeAssignor``).

Of n partitions, each of m subscribers in Kafka's order gets n // m, and the first n % m get one more. If two topics
have the same number of partitions and the same subscribers, partition p of both goes to one member (co-partitioning).
With many small topics, the first members get most partitions.

Where racks matter, members first get partitions of their own rack within these quotas (KIP-881):
`loadwise.assignor.algorithms.range.racks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from loadwise.assignor.algorithms.range.racks import assign_by_rack
from loadwise.assignor.model import Assignment, GroupSnapshot, Owners, Traits


@dataclass(frozen=True, slots=True)
class Range:
    """Kafka's ``range``."""

    name: ClassVar[str] = "range"
    traits: ClassVar[Traits] = Traits()

    def assign(self, group: GroupSnapshot) -> Assignment:
        """Return Java's assignment; O(P + K M) for K classes of topics, O(P M) for topics to which racks matter."""
        if not group.size:
            return Assignment(group, np.empty(0, np.int32))
        owner = _ranges(group)
        assign_by_rack(group, owner)
        return Assignment(group, owner)


def _ranges(group: GroupSnapshot) -> Owners:
    eligible, class_of = group.subscribers_of_class, group.class_of_topic
    members = np.nonzero(eligible)[1].astype(np.int32)  # the subscribers of all classes, concatenated
    width = eligible.sum(axis=1)
    first = (np.cumsum(width) - width)[class_of]
    size = np.diff(group.topic_start)
    share, extra = np.divmod(size, width[class_of])
    # One entry for each member that gets partitions of a topic, so at most one for each partition.
    readers = np.minimum(size, width[class_of])
    place = np.arange(readers.sum()) - np.repeat(np.cumsum(readers) - readers, readers)
    count = np.repeat(share, readers) + (place < np.repeat(extra, readers))
    return np.repeat(members[np.repeat(first, readers) + place], count)
