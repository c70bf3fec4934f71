"""Commits, commits in transactions and what deletes them, in random orders, on a broker that is killed meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from client_messages import client_request
from topics import until
from transactors import Transactor

from loadwise.protocol.error_codes import ErrorCode

SOON = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""What a broker answers until it has its partitions again."""
_STEPS = ("commit", "stage", "stage", "stage", "end", "end", "delete offset", "make topic again")


def offset_walk(seed: int, steps: int = 12, killed: int = 6) -> Callable[[Transactor], Iterator[Any]]:
    """An exchange of so many steps, with the committed offset after each; the broker is killed after some of them."""

    def offsets_at_random(broker: Transactor) -> Iterator[Any]:
        random, names = Random(seed), [broker.transactional_id, f"{broker.transactional_id}-second"]
        producers = {}
        for broker.transactional_id in names:
            broker.again(lambda: (broker.init(timeout_ms=600_000)[0],))
            error, producers[broker.transactional_id] = broker.init(timeout_ms=600_000)
            assert error == 0
        keep_group(broker)
        for step in range(steps):
            if step == killed:
                yield "killed"
            act, broker.transactional_id = random.choice(_STEPS), random.choice(names)
            who = producers[broker.transactional_id]
            outcome: Any = None
            if act == "commit":
                outcome = broker.again(lambda: (broker.commit("", -1),), also=SOON)
            elif act == "stage":
                outcome = broker.commit_offset(who, 10 + step)
            elif act == "end":
                is_committed = random.choice([True, False])
                outcome, after = broker.end(who, committed=is_committed)
                if outcome == ErrorCode.NONE:
                    producers[broker.transactional_id] = after
            elif act == "delete offset":
                outcome = broker.again(lambda: delete_offset(broker), also=SOON)
            else:
                make_topic_again(broker)
                keep_group(broker)
            seen = [
                broker.again(lambda: broker.committed(stable=each), also=SOON)  # noqa: B023
                for each in (True, False)
            ]
            yield act, names.index(broker.transactional_id), outcome, seen

    offsets_at_random.__name__ = f"offsets_at_random_{seed}"
    return offsets_at_random


def keep_group(broker: Transactor) -> None:
    """Commit an offset of another partition: without one, ours forgets the group in a restart, and Kafka later."""
    partition = {"partition_index": 1, "committed_offset": 0, "committed_metadata": None}
    request = client_request(
        "OffsetCommit", 9, group_id=broker.group, member_id="",
        topics=[{"name": broker.topic, "partitions": [partition]}],
    )  # fmt: skip
    broker.again(lambda: (broker.exchange(request).topics[0].partitions[0].error_code,), also=SOON)


def delete_offset(broker: Transactor) -> tuple[int, ...]:
    topics = [{"name": broker.topic, "partitions": [{"partition_index": 0}]}]
    answer = broker.ask("OffsetDelete", 0, group_id=broker.group, topics=topics)
    rows = [each.error_code for topic in answer.topics for each in topic.partitions]
    return (answer.error_code, *rows)


def make_topic_again(broker: Transactor) -> None:
    """Kafka deletes a topic's offsets some time after the topic."""
    (row,) = broker.ask("DeleteTopics", 6, topics=[{"name": broker.topic}], timeout_ms=60_000).responses
    assert row.error_code == ErrorCode.NONE
    until(lambda: broker.committed(stable=True)[:2] == (ErrorCode.NONE, -1), lambda: broker.committed(stable=True))
    request = client_request("Metadata", 12, topics=[{"name": broker.topic}], allow_auto_topic_creation=False)
    until(lambda: broker.exchange(request).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    until(lambda: broker.create_topic(partitions=2) == ErrorCode.NONE)
    broker.wait_for_topic()
