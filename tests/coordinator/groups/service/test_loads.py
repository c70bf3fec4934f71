"""What the coordinator's logs and commits tell of the load."""

from __future__ import annotations

from dataclasses import dataclass, field

from consumer_groups import FakeTopics

from loadwise.assignor.live.reading import Position
from loadwise.coordinator.groups.offsets import Offsets
from loadwise.coordinator.groups.records import OffsetRecord
from loadwise.coordinator.groups.service.loads import LogLoads


@dataclass
class FakeLog:
    end_offset: int = 0
    start_offset: int = 0
    ended: int | None = None

    def end_before(self, _timestamp_ms: int, /) -> int | None:
        return self.ended


@dataclass
class Cluster:
    """Topic t with two partitions whose ends tests set."""

    topics: FakeTopics = field(default_factory=lambda: FakeTopics(t=2))
    logs: dict[int, FakeLog] = field(default_factory=lambda: {0: FakeLog(), 1: FakeLog()})
    offsets: Offsets = field(default_factory=Offsets)

    def log(self, name: str, partition: int) -> FakeLog | None:
        return self.logs.get(partition) if name == "t" else None

    def commit(self, partition: int, offset: int) -> None:
        record = OffsetRecord(
            group_id="g",
            topic="t",
            partition=partition,
            offset=offset,
            leader_epoch=-1,
            metadata="",
            committed_ms=2000,
        )
        self.offsets.apply(record)

    def loads(self) -> LogLoads:
        return LogLoads(self.topics, self, self.offsets)


def test_what_is_not_committed_is_unread_from_its_start() -> None:
    cluster = Cluster()
    cluster.logs[0] = FakeLog(500, start_offset=200)
    cluster.logs[1].end_offset = 100
    cluster.commit(1, 60)
    assert cluster.loads().positions("g", ["t"], 5000) == {
        ("t", 0): Position(500, 300, committed=False),
        ("t", 1): Position(100, 40, age_s=3.0),
    }


def test_records_that_were_deleted_and_ends_that_were_passed_are_no_lag() -> None:
    cluster = Cluster()
    cluster.logs = {0: FakeLog(500, start_offset=200), 1: FakeLog(10)}
    cluster.commit(0, 100)
    cluster.commit(1, 60)
    lags = {number: each.lag for (_, number), each in cluster.loads().positions("g", ["t"], 5000).items()}
    assert lags == {0: 300, 1: 0}


def test_a_topic_that_is_gone_has_no_positions() -> None:
    assert Cluster().loads().positions("g", ["none"], 0) == {}
    assert Cluster().loads().ends_before(["none"], 0) == {}


def test_where_partitions_ended_is_told_of_those_whose_logs_tell() -> None:
    cluster = Cluster()
    cluster.logs[0].ended = 70
    assert cluster.loads().ends_before(["t"], 0) == {("t", 0): 70}
