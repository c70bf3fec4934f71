"""The table of Cruise Control's goals in the guide: it has all of its defaults, and each row names a test."""

from __future__ import annotations

import re
from pathlib import Path

from loadwise.balance.cluster import Broker, Cluster, Partition
from loadwise.balance.plan import plan

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "brokers.md"
DEFAULTS = [
    "RackAware",
    "ReplicaCapacity",
    "DiskCapacity",
    "NetworkInboundCapacity",
    "NetworkOutboundCapacity",
    "CpuCapacity",
    "ReplicaDistribution",
    "PotentialNwOut",
    "DiskUsageDistribution",
    "NetworkInboundUsageDistribution",
    "NetworkOutboundUsageDistribution",
    "CpuUsageDistribution",
    "TopicReplicaDistribution",
    "LeaderReplicaDistribution",
    "LeaderBytesInDistribution",
]
"""``default.goals`` of Cruise Control's cruisecontrol.properties."""


def _rows() -> list[list[str]]:
    section = GUIDE.read_text().split("## Cruise Control's goals")[1]
    rows = [line.strip("| ").split("|") for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


def test_the_table_has_every_default_goal_once() -> None:
    named = [goal for row in _rows() for goal in re.findall(r"`(\w+)Goal`", row[0])]
    assert len(set(named)) == len(named)
    assert set(DEFAULTS) <= set(named)


def test_each_row_says_what_is_kept_and_names_a_test() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for row in _rows():
        assert re.match(r"yes|partly|no\b", row[1]), row
        if "CPU" not in row[1]:
            (shown_by,) = re.findall(r"`(test_\w+)`", row[2])
            assert f"def {shown_by}(" in tests


def test_numbers_of_replicas_and_leaders_are_not_evened_out() -> None:
    """One broker has few heavy partitions, the other many light ones of the same load."""
    heavy = [_partition("heavy", number, 1, 9.0) for number in range(2)]
    light = [_partition("light", number, 2, 1.0) for number in range(18)]
    cluster = Cluster(brokers=(Broker(id=1), Broker(id=2)), partitions=(*heavy, *light))
    assert plan(cluster).planned == cluster


def _partition(topic: str, number: int, broker: int, load: float) -> Partition:
    return Partition(
        topic=topic,
        partition=number,
        replicas=(broker,),
        leader=broker,
        size_bytes=load,
        bytes_in_per_s=load,
        bytes_out_per_s=load,
    )
