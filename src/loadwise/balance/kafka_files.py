"""A plan in the JSON that Kafka's own tools execute. No I/O.

A leader change takes both files: the first replica is the preferred leader, so the replicas are reordered, which moves
nothing, and then the preferred leader is elected.
"""

from __future__ import annotations

from typing import Any

from loadwise.balance.plan import Plan


def reassignment(plan: Plan) -> dict[str, Any]:
    """What ``kafka-reassign-partitions.sh --reassignment-json-file`` takes."""
    return {
        "version": 1,
        "partitions": [
            {"topic": each.topic, "partition": each.partition, "replicas": list(each.replicas)}
            for each in plan.reassigned
        ],
    }


def leader_election(plan: Plan) -> dict[str, Any]:
    """What ``kafka-leader-election.sh --election-type preferred --path-to-json-file`` takes."""
    return {"partitions": [{"topic": each.topic, "partition": each.partition} for each in plan.elected]}
