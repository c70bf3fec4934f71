"""What members of classic groups ask, with fields that most tests do not care about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadwise.coordinator.groups.events import Join, Protocol, Sync


def join_event(token: int, member_id: str = "", **changes: Any) -> Join:
    fields: dict[str, Any] = {
        "instance_id": None, "fresh_member_id": f"m{token}", "client_id": "c", "client_host": "/h",
        "protocol_type": "consumer", "protocols": [Protocol("range", b"")], "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000, "requires_member_id": False, "can_skip_assignment": False,
    }  # fmt: skip
    return Join(token=token, member_id=member_id, **fields | changes)


def sync_event(
    token: int, member_id: str, generation: int, assignments: Sequence[tuple[str, bytes]] = (), **changes: Any
) -> Sync:
    fields = {"instance_id": None, "protocol_type": None, "protocol_name": None} | changes
    return Sync(token=token, member_id=member_id, generation=generation, assignments=assignments, **fields)
