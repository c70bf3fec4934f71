"""The examples run as they stand."""

import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaProducer

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("script", ["consumer_kafka_python.py", "consumer_aiokafka.py"])
def test_example(script, coordinator, topic, group_id):
    producer = KafkaProducer(bootstrap_servers=coordinator.bootstrap_servers)
    for _ in range(20):
        producer.send(topic, b"x")
    producer.close()
    servers = ["--bootstrap-servers", coordinator.bootstrap_servers, "--group", group_id]
    command = [sys.executable, EXAMPLES / script, topic, *servers, "--seconds", "1.5"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count(f"('{topic}', ") >= 6
    assert "20 records; led " in ran.stdout
    assert ", 0 of them without load" in ran.stdout


@pytest.mark.parametrize("own", [False, True], ids=["made up", "own topic"])
def test_comparing(own, coordinator, topic):
    options = []
    if own:
        producer = KafkaProducer(bootstrap_servers=coordinator.bootstrap_servers)
        for number in range(30):
            producer.send(topic, b"x", partition=0 if number < 20 else 3)
        producer.close()
        options = [topic, "--bootstrap-servers", coordinator.bootstrap_servers, "--members", "2"]
    command = [sys.executable, EXAMPLES / "compare_assignors.py", *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["range", "roundrobin", "sticky", "weighted"]
    if own:
        assert lines[0] == f"{topic}: 6 partitions, 30 in all, 2 members"
        assert "max/mean 1.33" in lines[4]
        assert sorted(lines[4].split()[-2:]) == ["10", "20"]
