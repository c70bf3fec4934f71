"""Sticky if all members subscribe to the same topics and racks do not matter: Java's assignment, to the partition.

There Java's assignment (``AbstractStickyAssignor.ConstrainedAssignmentBuilder``) is the best one. So the leader may
change between Java and us without moving a partition. With P partitions and M members, every member gets P // M, and
P % M members get one more:

1. A member keeps its partitions up to its number, the lowest partition numbers of all topics first. The larger numbers
   go to the first members, in the order of a ``java.util.HashMap``, that own enough.
2. The rest is dealt, topic by topic and round by round, to the members below their number, in the order of their ids.
3. The remaining partitions go, one each, to members that kept P // M, in the order of their ids, and then to the others
   in the order in which they reached theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loadwise.assignor.member import java_sorted, utf16_order
from loadwise.assignor.model import NOBODY, GroupSnapshot, Ints, Owners, stable_order

_LEAST_BUCKETS = 16


def uniform_owner(group: GroupSnapshot, rows: Ints, listed: Ints | None) -> Owners:
    """Return the owner of some of a group's partitions, as if it had no others: int32[n] for int64[n] ascending rows.

    ``listed`` is `GroupSnapshot.listed`, or None for a result that does not depend on it.
    O(n), or O(n log n) if members own more than they may keep.
    """
    members = len(group.members)
    share, extra = divmod(len(rows), members)
    by_id = _by_id(group)
    owner = group.owner if len(rows) == group.size else group.owner[rows]
    owned = np.bincount(owner + 1, minlength=members + 1)[1:]
    if not owned.any():
        return np.resize(by_id, len(rows))
    keep = np.minimum(owned, share)
    if extra:
        large = np.flatnonzero(owned > share)
        if len(large) > extra:
            if listed is not None:
                large = large[np.argsort(listed[large])]
            order = hash_map_order([group.members[member] for member in large.tolist()], members)
            large = large[order[:extra]]
        keep[large] += 1
        extra -= len(large)
    answer = _kept(group, rows, owner, owned - keep)

    missing = (share - keep)[by_id]  # negative for members that keep one more
    under = np.flatnonzero(missing > 0)
    dealt = by_id[under[_rounds(missing[under])]]
    if extra:
        content = by_id[(missing == 0) & (owned >= share)[by_id]]
        filled_up = under[np.argsort(missing[under], kind="stable")]
        dealt = np.concatenate((dealt, np.concatenate((content, by_id[filled_up]))[:extra]))
    answer[answer == NOBODY] = dealt
    return answer


def _by_id(group: GroupSnapshot) -> Owners:
    """int32[M]: the members in the order of their ids. Kafka's order has static members first."""
    if not any(instance_id is not None for instance_id in group.instance_ids):
        return np.arange(len(group.members), dtype=np.int32)
    number = {member: index for index, member in enumerate(group.members)}
    return np.array([number[member] for member in java_sorted(group.members)], np.int32)


def _kept(group: GroupSnapshot, rows: Ints, owner: Owners, surplus: Ints) -> Owners:
    """int32[n]: the owners after members give up their ``surplus``, the highest partition numbers first."""
    answer = owner.copy()
    if surplus.any():
        held = np.flatnonzero((owner != NOBODY) & (surplus > 0)[owner])
        number = group.partition_of[rows[held]]
        held = held[stable_order(number, int(number.max()) + 1)]  # equal numbers by topic
        held = held[stable_order(owner[held], len(surplus))]
        count = np.bincount(owner[held], minlength=len(surplus))
        place = np.arange(len(held)) - np.repeat(np.cumsum(count) - count, count)
        answer[held[place >= (count - surplus)[owner[held]]]] = NOBODY
    return answer


def _rounds(wanted: Ints) -> Ints:
    """Deal to members round by round until each has its wanted number; return whose turn it is each time."""
    most = int(wanted.max(initial=0))
    if (wanted == most).all():
        return np.tile(np.arange(len(wanted)), most)
    member = np.repeat(np.arange(len(wanted)), wanted)
    round_ = np.arange(len(member)) - np.repeat(np.cumsum(wanted) - wanted, wanted)
    return member[stable_order(round_, most)]


def hash_map_order(keys: Sequence[str], size: int, buckets: int = _LEAST_BUCKETS) -> Ints:
    """int64[k]: the indices of keys in the order that a ``java.util.HashMap`` of ``size`` entries iterates over them.

    ``buckets`` is its initial number of buckets, a power of two. Keys of one bucket keep the given order. A map that is
    three quarters full doubles its buckets.
    """
    while size > buckets * 3 // 4:
        buckets *= 2
    hashes = np.array([_java_hash(key) for key in keys], np.uint32)
    return np.argsort((hashes ^ (hashes >> 16)) & (buckets - 1), kind="stable")


def _java_hash(text: str) -> int:
    """Return ``String.hashCode`` as an unsigned number."""
    found = 0
    units = utf16_order(text)
    for high, low in zip(units[::2], units[1::2], strict=True):
        found = (31 * found + 256 * high + low) & 0xFFFFFFFF
    return found
