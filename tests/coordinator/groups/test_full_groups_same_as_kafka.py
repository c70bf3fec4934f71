"""A classic group that is full (group.max.size): whom Apache Kafka and ours let in, and when it is refused."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from kafka_process import kafka_from_jars
from missing import skipped_where_missing
from sessions import Session
from topics import until

from loadwise.coordinator import BrokerSettings, Coordinator, GroupLimits
from loadwise.protocol.error_codes import ErrorCode

pytestmark = pytest.mark.kafka

MOST_MEMBERS = 2
REBALANCE_MS = 6000
"""Longer than a busy machine takes from one member's join to the last answer before the rebalance ends."""


def answers(address: str) -> list[Any]:
    """Four members of a group of two: who was told its id (KIP-394) is no member yet, and may come too late."""
    with contextlib.ExitStack() as stack:
        sessions = [Session(address) for _ in range(5)]
        for each in sessions:
            stack.callback(each.close)
            each.group, each.ids = sessions[0].group, sessions[0].ids
        first, second, third, fourth, watcher = sessions
        pool = stack.enter_context(ThreadPoolExecutor())
        until(lambda: first.beat("none") == ErrorCode.UNKNOWN_MEMBER_ID, lambda: first.beat("none"))
        seen = [first.join(version=3, rebalance_timeout_ms=REBALANCE_MS), first.sync(0)]
        seen += [each.join() for each in (second, third, fourth)]
        waiting = [pool.submit(second.join, 1, rebalance_timeout_ms=REBALANCE_MS)]
        until(lambda: first.beat(0) == ErrorCode.REBALANCE_IN_PROGRESS, lambda: first.beat(0))
        waiting.append(pool.submit(third.join, 2, rebalance_timeout_ms=REBALANCE_MS))
        until(lambda: len(watcher.describe()[4]) == 3, watcher.describe)
        seen += [fourth.join(3), fourth.join(), first.join(0), first.beat(0)]
        # Which of the two leads is chance in Kafka: the first in a hash map of member ids that are random.
        joined = [each.result() for each in waiting]
        seen += sorted((error, generation, protocol, number) for error, generation, protocol, *_, number in joined)
        syncs = [pool.submit(third.sync, 2, 2), pool.submit(second.sync, 1, 2)]
        seen += [each.result() for each in syncs]
        seen += [
            first.beat(0),
            first.join(0),
            fourth.join(3),
            fourth.join(),
            second.leave((1, None)),
            watcher.describe()[1],
        ]
    return seen


def test_who_is_let_in() -> None:
    with skipped_where_missing(), kafka_from_jars(more={"group.max.size": str(MOST_MEMBERS)}) as kafka:
        of_kafka = answers(kafka["PLAINTEXT"])
    with Coordinator(settings=BrokerSettings(groups=GroupLimits(max_size=MOST_MEMBERS))).in_thread() as ours:
        assert answers(ours.bootstrap_servers) == of_kafka
