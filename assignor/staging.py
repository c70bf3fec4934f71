"""Staging: move from the current owners to the target without giving a partition two owners (KIP-429).

A cooperative member keeps its partitions while the group rebalances. So a partition must not go to its new owner
before the old one has revoked it. In the first round it stays unassigned; its owner sees that, revokes it and rejoins.
In the second round no member claims it, and it is assigned. Kafka's class is ``AbstractStickyAssignor`` with
``CooperativeStickyAssignor.adjustAssignment``. This module uses a simpler rule: a partition that moves must not be
claimed by any other member, stale claim or not. The rightful owner's partitions that stay are not affected.
"""

from __future__ import annotations

from loadwise.assignor.model import NOBODY, Assignment


def stage(target: Assignment) -> Assignment:
    """Return the part of a target that may be assigned now; the rest stays unassigned until the next round."""
    group = target.group
    owner = target.owner.copy()
    handed_on = owner != group.owner
    claimed_by_another = group.claim_member != owner[group.claim_row]
    waits = group.claim_row[claimed_by_another & handed_on[group.claim_row]]
    owner[waits] = NOBODY
    return Assignment(group, owner)
