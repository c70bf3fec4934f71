"""Staging the way to a target: what may be handed on now."""

from __future__ import annotations

import numpy as np

from loadwise.assignor.model import Assignment, GroupSnapshot, Member
from loadwise.assignor.staging import stage


def staged(target: list[int], **members: tuple[int, list[int]]) -> list[int]:
    """The staged owners of a topic's partitions, for members with a generation and what they claim of it."""
    group = GroupSnapshot.of(
        [Member(id=id_, topics=["t"], owned={"t": claims}, generation=g) for id_, (g, claims) in members.items()],
        {"t": len(target)},
    )
    return stage(Assignment(group, np.array(target, np.int32))).owner.tolist()


def test_what_is_claimed_by_another_waits_and_the_rest_goes_out_at_once() -> None:
    assert staged([0, 1, 1], a=(1, [0, 1]), b=(1, [])) == [0, -1, 1]


def test_the_rightful_owner_keeps_what_a_stale_member_claims_too() -> None:
    assert staged([0, 0], a=(2, [0, 1]), b=(1, [1])) == [0, 0]


def test_what_two_claim_with_equal_right_is_given_to_neither() -> None:
    assert staged([0], a=(2, [0]), b=(2, [0])) == [-1]


def test_a_stale_claim_holds_up_everybody_but_the_owner() -> None:
    assert staged([2], a=(2, [0]), b=(1, [0]), c=(2, [])) == [-1]
    assert staged([1], a=(2, [0]), b=(1, [0])) == [-1]
