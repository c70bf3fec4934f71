"""Prepares a snapshot to be restored: checks its brokers, and updates its producers."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from loadwise.coordinator.cluster.brokers import Brokers
from loadwise.coordinator.cluster.records import CoordinatorsRecord, PartitionRecord, ProducerIdsRecord
from loadwise.coordinator.cluster.topics import Topics
from loadwise.coordinator.errors import BadClusterError
from loadwise.coordinator.keeper import Forked, Place, Snapshot


def check_brokers(state: Snapshot, brokers: Brokers) -> None:
    """Raise `BadClusterError` if partitions or groups are on brokers that do not exist."""
    known = [node.id for node in brokers.nodes]
    placed = {each for record in state.of(PartitionRecord) for each in record.replicas}
    placed.update(each for record in state.of(CoordinatorsRecord) for each in record.node_ids)
    if not placed <= set(known):
        there = f"this one has {known}"
        raise BadClusterError(f"the snapshot's cluster had brokers {sorted(placed)}, but {there}: use at least as many")


def restored(snapshot: Snapshot, ids: ProducerIdsRecord, topics: Topics) -> Snapshot:
    """Return the snapshot as it must be restored into the cluster with the logs ``topics``.

    ``ids`` are the producer ids in use, which are not assigned again. A transactional producer gets an epoch that it
    never had before. A producer without transactions that has written since the snapshot is dropped, so that it
    continues with its current sequence number.
    """
    transactional = {each.producer_id for each in snapshot.of(Forked)}
    values: list[tuple[Place, object]] = []
    for place, value in snapshot.values:
        match value:
            case ProducerIdsRecord():
                values.append((place, ids))
            case Forked():
                values.append((place, value.forked()))
            case PartitionRecord():
                values.append((place, _without_writers_since(value, topics, transactional)))
            case _:
                values.append((place, value))
    return Snapshot(values, snapshot.logs)


def _without_writers_since(record: PartitionRecord, topics: Topics, transactional: Container[int]) -> PartitionRecord:
    partition = topics.partition_of(record.log_name)
    if partition is None:
        return record
    now = {each.producer_id: each for each in partition.log.producers.records()}
    known = [
        each for each in record.log.producers if each.producer_id in transactional or now.get(each.producer_id) == each
    ]
    return replace(record, log=replace(record.log, producers=known))
