"""A reading of ``loadwise watch`` for programs."""

from __future__ import annotations

from typing import Any

from loadwise.compare.comparison import Comparison
from loadwise.watch.status import GroupStatus
from loadwise.watch.verdict import Verdict


def as_json(status: GroupStatus, verdict: Verdict, comparison: Comparison | None) -> dict[str, Any]:
    """The reading as what ``json.dumps`` takes; rates are null until two readings are there."""
    return {
        "group": status.group_id,
        "protocol": status.protocol,
        "state": status.state,
        "window_s": round(status.window_s, 3),
        "verdict": verdict.text,
        "lag": status.lag,
        "arrival_per_s": status.arrival_per_s if status.window_s else None,
        "processed_per_s": status.processed_per_s if status.window_s else None,
        "members_wanted": status.members_wanted,
        "live_off": status.switch is not None and status.switch.off,
        "lag_s": None if status.compared is None else status.compared.lag_s,
        "lag_saved_s": None if status.compared is None else status.compared.saved_s,
        "unowned_partitions": status.unowned,
        "retention_left_s": status.retention_left_s,
        "members": [
            {
                "member": member.label,
                "host": member.host,
                "partitions": member.partitions,
                "lag": member.lag,
                "arrival_per_s": member.arrival_per_s if status.window_s else None,
                "processed_per_s": member.processed_per_s if status.window_s else None,
                "capacity_per_s": member.capacity_per_s,
                "utilisation": member.utilisation,
                "condition": member.condition.value if status.window_s else None,
            }
            for member in status.members
        ],
        "max_over_mean": None
        if comparison is None
        else {row.assignor: row.measured.max_over_mean for row in comparison.rows},
    }
