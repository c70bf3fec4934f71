"""Staging: the way from what members own to the target, without a partition ever having two owners (KIP-429).

A cooperative member keeps what it owns while the group rebalances. So a partition must not be handed to its new owner
before the old one has given it up: in the first round it is assigned to nobody, its owner sees it missing, revokes it
and rejoins; in the second round nobody claims it any more. Kafka's class: ``AbstractStickyAssignor`` /
``CooperativeStickyAssignor.adjustAssignment``, which this states more simply: whoever claims counts, stale or not.
"""

from __future__ import annotations

from loadwise.assignor.model import NOBODY, Assignment


def stage(target: Assignment) -> Assignment:
    """Answer the part of a target that may be handed out now: all but what a member other than its new owner claims."""
    group = target.group
    owner = target.owner.copy()
    held_by_another = group.claim_member != target.owner[group.claim_row]
    owner[group.claim_row[held_by_another]] = NOBODY
    return Assignment(group, owner)
