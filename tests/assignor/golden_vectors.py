"""The answers of the real kafka-clients 4.3.1, kept in ``tests/golden``, and what they are measured by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "kafka-clients-4.3.1.jsonl"
VECTORS: list[dict[str, Any]] = [json.loads(line) for line in GOLDEN.read_text().splitlines()]

Partitions = dict[str, list[int]]


def grouped(pairs: list[tuple[str, int]]) -> Partitions:
    grouped: Partitions = {}
    for topic, partition in sorted(map(tuple, pairs)):
        grouped.setdefault(topic, []).append(partition)
    return grouped


def is_equal(vector: dict[str, Any]) -> bool:
    """Whether all members read the same topics and racks play no part."""
    racked = any("racks" in topic for topic in vector["topics"].values())
    return len({tuple(sorted(member["topics"])) for member in vector["members"]}) == 1 and not racked


def java_answer(vector: dict[str, Any]) -> dict[str, Partitions]:
    return {member: grouped(answer["partitions"]) for member, answer in vector["java"].items()}


def quality(vector: dict[str, Any], answer: dict[str, Partitions]) -> tuple[int, int, int]:
    """What sticky is after, less is better: squared counts, partitions off their reader's rack, partitions not kept."""
    racks = {member["id"]: member.get("rack") for member in vector["members"]}
    kept = {member["id"]: {tuple(claim) for claim in member.get("owned", ())} for member in vector["members"]}
    uneven = misplaced = moved = 0
    for member, topics in answer.items():
        mine = {(topic, partition) for topic, partitions in topics.items() for partition in partitions}
        uneven += len(mine) ** 2
        moved += len(kept[member] - mine)
        for topic, partition in mine:
            replicas = vector["topics"][topic].get("racks", [()] * (partition + 1))[partition]
            misplaced += bool(replicas) and racks[member] is not None and racks[member] not in replicas
    return uneven, misplaced, moved
