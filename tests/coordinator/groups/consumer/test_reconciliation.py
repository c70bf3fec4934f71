"""A member's next assignment, step by step, by the rules of Kafka's ``CurrentAssignmentBuilder``."""

from __future__ import annotations

from uuid import UUID

import pytest

from loadwise.coordinator.groups.consumer.reconciliation import Reconciliation
from loadwise.coordinator.groups.consumer_records import MemberAssignment, MemberState
from loadwise.coordinator.turns import whole

A, B = UUID(int=1), UUID(int=2)
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)
Numbers = dict[UUID, list[int]]
ALL: Numbers = {A: [1, 2], B: [3]}


def since(epoch: int, numbers: Numbers) -> dict[UUID, dict[int, int]]:
    return {topic: dict.fromkeys(each, epoch) for topic, each in numbers.items()}


def member(state: MemberState, epoch: int, assigned: Numbers, pending: Numbers) -> MemberAssignment:
    return MemberAssignment(
        group_id="g", member_id="m", epoch=epoch, previous_epoch=9, state=state,
        assigned=since(10, assigned), pending_revocation=since(10, pending),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "target", "heartbeat", "after"),
    [
        pytest.param((STABLE, 10, ALL, {}), (10, ALL), (None, {A, B}, False), None, id="nothing changes"),
        pytest.param((STABLE, 10, ALL, {}), (11, ALL), (None, {A, B}, False), (STABLE, 11, ALL, {}), id="next epoch"),
        pytest.param(
            (STABLE, 10, ALL, {}), (11, {A: [2]}), (None, {A, B}, False), (UNREVOKED, 10, {A: [2]}, {A: [1], B: [3]}),
            id="it must revoke first",
        ),
        pytest.param(
            (STABLE, 10, ALL, {}), (11, {A: [2]}), ({A: [2]}, {A, B}, False), (STABLE, 11, {A: [2]}, {}),
            id="it owns none of them",
        ),
        pytest.param(
            (STABLE, 10, ALL, {}), (11, {**ALL, B: [3, 4]}), (None, {A, B}, False), (UNRELEASED, 11, ALL, {}),
            id="another member still has it",
        ),
        pytest.param((STABLE, 10, ALL, {}), (10, ALL), (None, {A}, False), None, id="its subscription is as it was"),
        pytest.param(
            (STABLE, 10, ALL, {}), (10, ALL), (None, {A}, True), (UNREVOKED, 10, {A: [1, 2]}, {B: [3]}),
            id="it no longer subscribes to a topic that it owns",
        ),
        pytest.param(
            (STABLE, 10, ALL, {}), (10, ALL), ({A: [1, 2]}, {A}, True), (STABLE, 10, {A: [1, 2]}, {}),
            id="it no longer subscribes to a topic that it has revoked",
        ),
        pytest.param((STABLE, 10, ALL, {}), (10, ALL), (None, {A, B}, True), None, id="it subscribes to more"),
        pytest.param(
            (UNREVOKED, 10, {A: [2], B: [3]}, {A: [1]}), (11, {A: [2]}), ({A: [1]}, {A, B}, False), None,
            id="it has not revoked yet",
        ),
        pytest.param(
            (UNREVOKED, 10, {A: [2], B: [3]}, {A: [1]}), (11, {A: [2]}), ({A: [1]}, {A}, False), None,
            id="nor changed its subscription just now",
        ),
        pytest.param(
            (UNREVOKED, 10, {A: [2], B: [3]}, {A: [1]}), (11, {A: [2]}), ({A: [1]}, {A}, True),
            (UNREVOKED, 10, {A: [2]}, {A: [1], B: [3]}), id="it must revoke a topic more",
        ),
        pytest.param(
            (UNREVOKED, 10, {A: [2], B: [3]}, {A: [1]}), (11, {A: [2]}), ({A: [2], B: [3]}, {A, B}, False),
            (UNREVOKED, 10, {A: [2]}, {B: [3]}), id="it has revoked, and must revoke again",
        ),
        pytest.param(
            (UNREVOKED, 10, {A: [2]}, {A: [1]}), (11, {A: [2]}), ({A: [2]}, {A, B}, False), (STABLE, 11, {A: [2]}, {}),
            id="it has revoked",
        ),
        pytest.param(
            (UNRELEASED, 11, {A: [1]}, {}), (11, {A: [1], B: [4]}), (None, {A, B}, False),
            (UNRELEASED, 11, {A: [1]}, {}), id="another member has not released it",
        ),
    ],
)  # fmt: skip
def test_a_step(
    before: tuple[MemberState, int, Numbers, Numbers],
    target: tuple[int, Numbers],
    heartbeat: tuple[Numbers | None, set[UUID], bool],
    after: tuple[MemberState, int, Numbers, Numbers] | None,
) -> None:
    """A heartbeat reports owned partitions and subscribed topics, which may have changed. B-4 is another member's."""
    was = member(*before)
    owned, subscribed, changed = heartbeat
    step = Reconciliation(
        target={topic: frozenset(numbers) for topic, numbers in target[1].items()}, target_epoch=target[0],
        subscription_changed=changed, owned=owned, is_subscribed=subscribed.__contains__,
        is_free=lambda topic, number: (topic, number) != (B, 4),
    )  # fmt: skip
    now = whole(step.next(was))
    if after is None:
        assert now is was
        return
    wanted = member(*after)
    assert (now.state, now.epoch, now.assigned) == (wanted.state, wanted.epoch, wanted.assigned)
    assert (now.pending_revocation, now.previous_epoch) == (wanted.pending_revocation, 11 if was.epoch == 11 else 10)


@pytest.mark.parametrize("state", [STABLE, UNRELEASED])
def test_what_is_free_is_assigned_since_the_target_epoch(state: MemberState) -> None:
    step = Reconciliation(
        target={A: frozenset({1, 2})}, target_epoch=12, subscription_changed=False, owned=None,
        is_subscribed=lambda _: True, is_free=lambda *_: True,
    )  # fmt: skip
    now = whole(step.next(member(state, 11, {A: [1]}, {})))
    assert (now.state, now.epoch, now.assigned) == (STABLE, 12, {A: {1: 10, 2: 12}})
