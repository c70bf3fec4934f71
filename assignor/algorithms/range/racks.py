"""The rack-aware part of Range (KIP-881, ``RangeAssignor.assignWithRackMatching``).

It applies to a topic whose subscribers and replicas meet in some rack while not every partition is on every replica
rack. Topics with the same subscribers and as many partitions stay co-partitioned: partition p of all of them goes to
the first member that has room and is on a rack of p in every one. What finds no such member is dealt as plain Range
deals it, within the same quotas. A member whose rack is not known matches all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from loadwise.assignor.model import NOBODY, Bools, GroupSnapshot, Ints, Owners


@dataclass(slots=True)
class _Quotas:
    """What each subscriber of a topic may still get: a share each, and one more for so many of them."""

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
    """Assign anew, in ``owner``, the topics to which racks matter; leave the others as they are."""
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
        # Topics alike are matched together as soon as racks matter to any topic of the group, even to none of these.
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
    """bool[n, m]: which members are on a rack of each partition."""
    assert group.partition_racks is not None
    held = group.partition_racks[group.topic_start[topic] : group.topic_start[topic + 1]]
    racks = group.member_rack[members]
    matches: Bools = held[:, racks] | (racks < 0)
    return matches


def _one_by_one(matches: Bools, quotas: _Quotas) -> Ints:
    """Each partition in turn to the first member that matches and has room."""
    chosen = np.full(len(matches), NOBODY)
    for partition, match in enumerate(matches):
        for member in np.flatnonzero(match).tolist():
            if quotas.room(member):
                quotas.give(member, 1)
                chosen[partition] = member
                break
    return chosen


def _by_member(matches: Bools, quotas: _Quotas) -> Ints:
    """Each member in turn its matching partitions, as far as its room goes."""
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
