"""A Spark stream beside small consumers, on both brokers: it takes what they cannot, without a configured capacity."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from figures import Figure
from live_group import LiveGroup
from live_scenes import requests

pytestmark = [pytest.mark.kafka, pytest.mark.live]


def test_a_stream_gets_its_share_beside_two_small_consumers(broker, record, topic_name, group_id):
    """600 records/s arrive in 12 partitions. The stream can do 1,200, and each of the consumers three partitions.

    With an equal share the consumers would fall behind. What has piled up while they were alone is worked off.
    """
    with LiveGroup(broker, topic_name, group_id, rates=[50.0] * 12) as group:
        small = [group.join(client, speed=150.0) for client in ("kafka-python", "aiokafka")]
        group.wait_until(lambda: group.settled(2), why="joining")
        stream = group.join("spark", speed=1200.0)
        group.wait_until(lambda: group.settled(3), why="joining of the stream")
        began = time.monotonic()
        group.wait_until(lambda: len(stream.owned) >= 7 and group.settled(3), why="the share")
        share_s = time.monotonic() - began

        def even():
            return group.settled(3) and all(1 <= len(member.owned) <= 3 for member in small) and group.lag <= 900

        group.wait_until(even, why="even shares and a lag below 900")
        even_s = time.monotonic() - began
        record([Figure("the stream's share, s", share_s, 60), Figure("even, s", even_s, 120), requests(group)])
