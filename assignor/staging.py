"""Staging: the way from what members own to the target, without a partition ever having two owners (KIP-429).

A cooperative member keeps what it owns while the group rebalances. So a partition must not be handed to its new owner
before the old one has given it up: in the first round it is assigned to nobody, its owner sees it missing, revokes it
and rejoins; in the second round nobody claims it any more. Kafka's class: ``AbstractStickyAssignor`` /
``CooperativeStickyAssignor.adjustAssignment``, which this states more simply: what is handed on must not be claimed by
anybody else, whether that claim is stale or not. The rightful owner's own partitions are not handed on: they stay.
"""

from __future__ import annotations

from loadwise.assignor.model import NOBODY, Assignment


def stage(target: Assignment) -> Assignment:
    """Answer the part of a target that may be handed out now; the rest waits, with nobody, for the next round."""
    group = target.group
    owner = target.owner.copy()
    handed_on = owner != group.owner
    claimed_by_another = group.claim_member != owner[group.claim_row]
    waits = group.claim_row[claimed_by_another & handed_on[group.claim_row]]
    owner[waits] = NOBODY
    return Assignment(group, owner)
