"""The batches of a plan in the JSON that Kafka's own tools execute. No I/O.

A leader change takes both files: the first replica is the preferred leader, so the replicas are reordered, which moves
nothing, and then the preferred leader is elected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from loadwise.balance.batches import Batch
from loadwise.balance.cluster import Partition

PATTERN = "batch-*.json"
"""The files of a folder with a plan."""


def files(batches: Iterable[Batch]) -> Mapping[str, dict[str, Any]]:
    """The content of each file by its name, in the order in which they are executed. Kafka refuses empty ones."""
    every = list(batches)
    written: dict[str, dict[str, Any]] = {}
    for number, batch in enumerate(every, start=1):
        if batch.reassigned:
            written[reassignment_file(number, len(every))] = reassignment(batch.reassigned)
        if batch.elected:
            written[election_file(number, len(every))] = leader_election(batch.elected)
    return written


def reassignment_file(number: int, count: int) -> str:
    """The name of a batch's file for ``kafka-reassign-partitions.sh``; names are in the order of batches."""
    return f"batch-{number:0{max(2, len(str(count)))}}.json"


def election_file(number: int, count: int) -> str:
    """The name of a batch's file for ``kafka-leader-election.sh``."""
    return reassignment_file(number, count).replace(".json", "-leaders.json")


def reassignment(partitions: Iterable[Partition]) -> dict[str, Any]:
    """What ``kafka-reassign-partitions.sh --reassignment-json-file`` takes."""
    return {
        "version": 1,
        "partitions": [
            {"topic": each.topic, "partition": each.partition, "replicas": list(each.replicas)} for each in partitions
        ],
    }


def leader_election(partitions: Iterable[Partition]) -> dict[str, Any]:
    """What ``kafka-leader-election.sh --election-type preferred --path-to-json-file`` takes."""
    return {"partitions": [{"topic": each.topic, "partition": each.partition} for each in partitions]}
