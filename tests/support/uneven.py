"""A topic whose partitions three brokers lead unevenly: 6, 4 and 2."""

from __future__ import annotations

from loadwise import Dispatcher

PARTITIONS = 12
LEASE_RECORDS = 30
FEW = 3
"""At most so many of these go to a slow broker; broker 2 gets 10 by turns or by equal scores."""


def leader_of(partition: int) -> int:
    return 1 if partition < 6 else 2 if partition < 10 else 3


ERRORS = [("TOPIC_AUTHORIZATION_FAILED", set()), ("INVALID_REQUIRED_ACKS", set()), ("KAFKA_STORAGE_ERROR", {1})]
"""Errors of Produce for partition 0, and the brokers whose fault they are."""


def unacknowledged(dispatcher: Dispatcher, *nodes: int) -> int:
    """Return how many batches wait for these brokers."""
    seen = dispatcher._acknowledgements._seen
    return sum(len(seen[node].batches) for node in nodes if node in seen)
