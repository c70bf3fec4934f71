"""Explain to the user that the group uses none of the assignors that a consumer offers."""

from __future__ import annotations

from collections.abc import Sequence


def no_common_strategy(group_id: str, in_use: str, offered: Sequence[str]) -> str:
    """Explain Kafka's error INCONSISTENT_GROUP_PROTOCOL; ``in_use`` is the group's assignor, or empty."""
    group = f"group {group_id!r} uses the assignor {in_use!r}" if in_use else f"the members of group {group_id!r}"
    have = "which this member does not offer" if in_use else "have no assignor in common with this member"
    wanted, theirs = offered[0], in_use or "the group's assignor"
    return (
        f"{group}, {have}; it offers {', '.join(offered)}. All members of a group need one in common. To change a"
        f" running group without a stop, restart its members one by one with both, assignor={[wanted, theirs]!r}."
        f" When all have both, restart them once more with assignor={wanted!r} alone: docs/upgrading.md"
    )
