"""Java's Admin and transactional producer get the same from our coordinator and from Apache Kafka, call by call."""

from __future__ import annotations

import subprocess
import uuid

import pytest
from topics import make_topic

pytestmark = pytest.mark.kafka


def _lines(java, broker):
    topic = f"administrator-{uuid.uuid4()}"
    make_topic(broker, topic, 2)
    command = [*java, "Administrator", broker, topic]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_java_gets_the_same_from_both(java, coordinator, apache_kafka):
    ours, theirs = _lines(java, coordinator.bootstrap_servers), _lines(java, apache_kafka)
    assert ours == theirs
    assert len(ours) == 33
