"""Queries through Spark Connect: the program has a connection to Spark and nothing else of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="needs Spark Connect's client: pip install 'pyspark[connect]'")

CLIENT = Path(__file__).with_name("connect_client.py")

pytestmark = pytest.mark.spark


def test_a_batch_and_a_stream_through_spark_connect(spark, topic, tmp_path):
    topic = topic([300, 20, 0, 40])
    places = sorted([partition, offset] for partition, size in enumerate([300, 20, 0, 40]) for offset in range(size))
    service = getattr(spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    remote = f"sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}"
    command = [sys.executable, CLIENT, remote, topic.bootstrap_servers, topic.name, tmp_path / "checkpoint"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-8000:]
    told = json.loads(done.stdout)
    assert told["numTasks"] == "2", "as the session has task slots"
    assert told["by default"] == 2, "likewise"
    assert sorted(place for _, *place in told["batch"]) == places
    assert Counter(task for task, *_ in told["batch"]) == {0: 180, 1: 180}
    assert sorted(told["stream"]) == places
    assert told["lag"] == [0, 0, 0]
    assert "did you mean startingOffsets?" in told["refused"]
