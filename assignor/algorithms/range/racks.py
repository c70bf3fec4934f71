"""The rack-aware part of Range (KIP-881, ``RangeAssignor.assignWithRackMatching``).

It applies to a topic if its subscribers and replicas share a rack and not every partition is on every replica rack.
Topics with the same subscribers and number of partitions stay co-partitioned. Partition p of all of them goes to the
first member that has room and is on a rack of p in each topic. Partitions without such a member are dealt as plain
Range does, within the same quotas. A member without a known rack matches all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from loadwise.assignor.model import NOBODY, Bools, GroupSnapshot, Ints, Owners


@dataclass(slots=True)
class _Quotas:
    """The remaining quota of each subscriber of a topic: an equal share, and one more for some of them."""

    share: int
    extra: int
    given: list[int] = field(repr=False)

    def room(self, member: int) -> int:
        return max(0, self.share + (self.extra > 0) - self.given[member])

    def give(self, member: int, count: int) -> None:
        self.given[member] += count
        if self.given[member] > self.share:
            self.extra -= 1


def assign_by_rack(group: GroupSnapshot, owner: Owners) -> None:
    """Reassign the topics to which racks matter, in ``owner``; leave the others as they are."""
    if not group.racks_known:
        return
    sizes = np.diff(group.topic_start).tolist()
    alike: dict[tuple[int, int], list[int]] = {}
    for topic, class_ in enumerate(group.class_of_topic.tolist()):
        if sizes[topic]:
            alike.setdefault((class_, sizes[topic]), []).append(topic)
    needed = {topic for topics in alike.values() for topic in topics if _racks_matter(group, topic)}
    if not needed:
        return
    for (class_, size), topics in alike.items():
        members = np.flatnonzero(group.subscribers_of_class[class_])
        # Once racks matter to any topic of the group, equal topics are matched together even if they do not need it.
        if (group.member_rack[members] < 0).all() or (len(topics) == 1 and topics[0] not in needed):
            continue
        share, extra = divmod(size, len(members))
        quotas = _Quotas(share, extra, [0] * len(members))
        together = np.all([_matches(group, topic, members) for topic in topics], axis=0)
        chosen = _one_by_one(together, quotas) if len(topics) > 1 else _by_member(together, quotas)
        _deal_the_rest(chosen, quotas)
        for topic in topics:
            owner[group.topic_start[topic] : group.topic_start[topic + 1]] = members[chosen]


def _racks_matter(group: GroupSnapshot, topic: int) -> bool:
    assert group.partition_racks is not None
    held = group.partition_racks[group.topic_start[topic] : group.topic_start[topic + 1]]
    racks = group.member_rack[group.subscribers(topic)]
    any_of_them: Bools = np.any(held, axis=0)
    return bool(any_of_them[racks[racks >= 0]].any() and (held != any_of_them).any())


def _matches(group: GroupSnapshot, topic: int, members: Ints) -> Bools:
    """bool[n, m]: whether each member is on a rack of each partition."""
    assert group.partition_racks is not None
    held = group.partition_racks[group.topic_start[topic] : group.topic_start[topic + 1]]
    racks = group.member_rack[members]
    matches: Bools = held[:, racks] | (racks < 0)
    return matches


def _one_by_one(matches: Bools, quotas: _Quotas) -> Ints:
    """Assign each partition in turn to the first matching member with room."""
    chosen = np.full(len(matches), NOBODY)
    for partition, match in enumerate(matches):
        for member in np.flatnonzero(match).tolist():
            if quotas.room(member):
                quotas.give(member, 1)
                chosen[partition] = member
                break
    return chosen


def _by_member(matches: Bools, quotas: _Quotas) -> Ints:
    """Assign each member in turn its matching partitions, within its quota."""
    chosen = np.full(len(matches), NOBODY)
    for member in range(matches.shape[1]):
        mine = np.flatnonzero((chosen == NOBODY) & matches[:, member])[: quotas.room(member)]
        if len(mine):
            chosen[mine] = member
            quotas.give(member, len(mine))
    return chosen


def _deal_the_rest(chosen: Ints, quotas: _Quotas) -> None:
    rest = np.flatnonzero(chosen == NOBODY)
    for member in range(len(quotas.given)):
        if not len(rest):
            break
        mine = rest[: quotas.room(member)]
        if len(mine):
            chosen[mine] = member
            quotas.give(member, len(mine))
            rest = rest[len(mine) :]
