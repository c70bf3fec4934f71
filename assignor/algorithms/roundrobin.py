"""Round robin: all partitions, topic by topic, dealt to the members in a circle (Kafka's ``RoundRobinAssignor``).

Topics come in string order, members in Kafka's order. One circle runs over all topics and skips members that do not
subscribe to a topic. So counts can be uneven if subscriptions differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from loadwise.assignor.model import Assignment, GroupSnapshot, Owners, Traits


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """Kafka's ``roundrobin``."""

    name: ClassVar[str] = "roundrobin"
    traits: ClassVar[Traits] = Traits()

    def assign(self, group: GroupSnapshot) -> Assignment:
        """Return Java's assignment; O(P), or O(P + T log M) if subscriptions differ."""
        if group.equal_subscriptions:
            dealt = np.arange(group.size) % max(len(group.members), 1)
            return Assignment(group, dealt.astype(np.int32))
        owner: Owners = np.empty(group.size, np.int32)
        subscribers: list[Owners] = [np.flatnonzero(row).astype(np.int32) for row in group.subscribers_of_class]
        next_member = 0
        for topic, class_ in enumerate(group.class_of_topic.tolist()):
            start, stop = int(group.topic_start[topic]), int(group.topic_start[topic + 1])
            if start == stop:
                continue
            circle = subscribers[class_]
            first = int(np.searchsorted(circle, next_member))
            places = np.arange(first, first + stop - start) % len(circle)
            owner[start:stop] = circle[places]
            next_member = int(owner[stop - 1]) + 1
        return Assignment(group, owner)
