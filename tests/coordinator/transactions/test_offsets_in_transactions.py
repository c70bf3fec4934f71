"""Committed offsets and those of open transactions, at random, beside a model of Kafka's ``OffsetMetadataManager``."""

from __future__ import annotations

from itertools import count
from typing import Any

from client_messages import client_request
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from seeds import random_walk
from wires import Wire, only

from loadwise.coordinator.keeper import NOTHING
from loadwise.protocol.error_codes import ErrorCode

TOPICS = ("t", "u")
PRODUCERS = ("a", "b")

topics = st.sampled_from(TOPICS)
some_producers = st.lists(st.sampled_from(PRODUCERS), min_size=1, unique=True)


class Walk(RuleBasedStateMachine):
    """Group ``h`` and two producers commit offsets of two topics, which administrators delete."""

    def __init__(self) -> None:
        super().__init__()
        self.wire = Wire()
        self.wire.cluster.topics.create("u", 1)
        self.offsets = count(1)
        self.committed: dict[str, int] = {}
        self.staged: dict[str, dict[str, int]] = {name: {} for name in PRODUCERS}
        """Of a model in which each commit is newer than all before, as its offset is larger."""
        self.who = {name: self.begin(name) for name in PRODUCERS}

    def begin(self, name: str) -> tuple[int, int]:
        answer = self.wire.ask("InitProducerId", 5, transactional_id=name, transaction_timeout_ms=60_000)
        assert answer.error_code == ErrorCode.NONE
        return answer.producer_id, answer.producer_epoch

    def producer(self, name: str) -> dict[str, Any]:
        return {"transactional_id": name, "producer_id": self.who[name][0], "producer_epoch": self.who[name][1]}

    @rule(topic=topics)
    def commit(self, topic: str) -> None:
        offset = next(self.offsets)
        request = client_request("OffsetCommit", 9, group_id="h", member_id="", topics=rows(topic, offset))
        assert only(only(self.wire.exchange(request).topics).partitions).error_code == ErrorCode.NONE
        self.committed[topic] = offset

    @rule(names=some_producers, topic=topics)
    def stage(self, names: list[str], topic: str) -> None:
        for name in names:
            self.stage_one(name, topic)

    def stage_one(self, name: str, topic: str) -> None:
        offset = next(self.offsets)
        request = client_request(
            "TxnOffsetCommit", 5, group_id="h", member_id="", topics=rows(topic, offset), **self.producer(name)
        )
        assert only(only(self.wire.exchange(request).topics).partitions).error_code == ErrorCode.NONE
        self.staged[name][topic] = offset

    @rule(names=some_producers, committed=st.booleans())
    def end(self, names: list[str], committed: bool) -> None:
        for name in names:
            self.end_one(name, committed)

    def end_one(self, name: str, committed: bool) -> None:
        answer = self.wire.ask("EndTxn", 5, committed=committed, **self.producer(name))
        ended, self.staged[name] = self.staged[name], {}
        if answer.error_code == ErrorCode.INVALID_TXN_STATE:
            assert (committed, ended) == (True, {}), "only a transaction that never began cannot commit"
            return
        assert answer.error_code == ErrorCode.NONE
        self.who[name] = answer.producer_id, answer.producer_epoch
        for topic, offset in ended.items() if committed else ():
            self.committed[topic] = max(offset, self.committed.get(topic, -1))

    @rule(topic=topics)
    def delete_offset(self, topic: str) -> None:
        rows = [{"name": topic, "partitions": [{"partition_index": 0}]}]
        answer = self.wire.ask("OffsetDelete", 0, group_id="h", topics=rows)
        assert answer.error_code in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)
        self.forget(topic)

    @rule(topic=topics)
    def make_topic_again(self, topic: str) -> None:
        answer = self.wire.ask("DeleteTopics", 6, topics=[{"name": topic}], timeout_ms=1000)
        assert only(answer.responses).error_code == ErrorCode.NONE
        self.wire.cluster.topics.create(topic, 1)
        self.forget(topic)

    def forget(self, topic: str) -> None:
        for offsets in (self.committed, *self.staged.values()):
            offsets.pop(topic, None)

    @rule()
    def delete_group(self) -> None:
        self.wire.ask("DeleteGroups", 2, groups_names=["h"])
        for topic in TOPICS:
            self.forget(topic)

    @rule()
    def restart(self) -> None:
        """Open transactions outlast it."""
        after = Wire()
        after.cluster.load(self.wire.cluster.snapshot(), NOTHING, 1000)
        self.wire = after

    @invariant()
    def what_is_fetched_is_as_in_the_model(self) -> None:
        unstable = {topic for offsets in self.staged.values() for topic in offsets}
        asked = [{"name": topic, "partition_indexes": [0]} for topic in TOPICS]
        for stable in (True, False):
            answer = self.wire.ask("OffsetFetch", 8, require_stable=stable, groups=[{"group_id": "h", "topics": asked}])
            found = {
                each.name: (partition.error_code, partition.committed_offset)
                for each in only(answer.groups).topics
                for partition in each.partitions
            }
            assert found == {
                topic: (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
                if stable and topic in unstable
                else (ErrorCode.NONE, self.committed.get(topic, -1))
                for topic in TOPICS
            }


def rows(topic: str, offset: int) -> list[dict[str, Any]]:
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": None}
    return [{"name": topic, "partitions": [partition]}]


TestWalk = random_walk(Walk, walks=150, steps=15)
