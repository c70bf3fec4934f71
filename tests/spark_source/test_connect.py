"""Queries through Spark Connect: the program has a connection to Spark and nothing else of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="needs Spark Connect's client: pip install 'pyspark[connect]'")

from confluent_kafka.admin import AdminClient
from topics import WAIT_S

CLIENT = Path(__file__).with_name("connect_client.py")

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_a_batch_and_streams_through_spark_connect(spark, connect_address, topic, group_id, tmp_path):
    topic = topic([300, 20, 0, 40])
    places = sorted([partition, offset] for partition, size in enumerate([300, 20, 0, 40]) for offset in range(size))
    command = [sys.executable, CLIENT, connect_address, topic.bootstrap_servers, topic.name, group_id, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-8000:]
    told = json.loads(done.stdout)
    assert told["numTasks"] == "2", "as the session has task slots"
    assert told["by default"] == 2, "likewise"
    assert sorted(place for _, *place in told["batch"]) == places
    assert Counter(task for task, *_ in told["batch"]) == {0: 180, 1: 180}
    assert sorted(told["stream"]) == places
    assert sorted(told["member"]) == places
    admin = AdminClient({"bootstrap.servers": topic.bootstrap_servers})
    deadline = time.monotonic() + 30  # its session is longer, so it did leave
    while admin.describe_consumer_groups([group_id])[group_id].result(WAIT_S).members:
        assert time.monotonic() < deadline, "the stopped query is still a member"
        time.sleep(0.05)  # between two looks
    assert told["lag"] == [0, 0, 0]
    assert "did you mean 'startingOffsets'?" in told["refused"]
