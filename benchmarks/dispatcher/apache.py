"""Three brokers of Apache Kafka, one of which can be held up, and Java's producer: both need a JDK and Maven."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator

from kafka_process import jars
from three_kafkas import three_kafkas

from benchmarks.dispatcher.cluster import LEADS, SLOWED, TOPIC

_JAVAS_RESULT = re.compile(r"([\d.]+) ms avg latency.* ([\d.]+) ms 99th", re.DOTALL)


class ApacheCluster:
    """The running brokers. Each partition has one replica, so that no follower waits for the broker that is held up."""

    def __init__(self, address: str, pid: int) -> None:
        self.address = address
        self._pid = pid
        self._ended = threading.Event()
        self._holder: threading.Thread | None = None

    def slow(self, ms: int) -> None:
        """Stop one broker's process for so many milliseconds, then let it run as long, by turns; 0: no longer."""
        if self._holder is not None:
            self._ended.set()
            self._holder.join()
            self._ended.clear()
            self._holder = None
        if ms:
            self._holder = threading.Thread(target=self._hold, args=(ms / 1000,), daemon=True)
            self._holder.start()

    def _hold(self, seconds: float) -> None:
        while not self._ended.wait(seconds):
            os.kill(self._pid, signal.SIGSTOP)
            try:
                self._ended.wait(seconds)
            finally:
                os.kill(self._pid, signal.SIGCONT)


@contextlib.contextmanager
def apache_cluster() -> Iterator[ApacheCluster]:
    """Run the brokers, with the topic led unevenly, until the block ends."""
    from kafka import KafkaAdminClient
    from kafka.admin import NewTopic

    with three_kafkas() as nodes:
        address = ",".join(node.address for node in nodes.values())
        leaders = [broker for broker, count in LEADS.items() for _ in range(count)]
        with contextlib.closing(KafkaAdminClient(bootstrap_servers=address)) as admin:
            placed = {partition: [leader] for partition, leader in enumerate(leaders)}
            admin.create_topics([NewTopic(TOPIC, -1, -1, replica_assignments=placed)])
        cluster = ApacheCluster(address, nodes[SLOWED].pid)
        try:
            yield cluster
        finally:
            cluster.slow(0)


def javas_latencies(
    address: str, records: int, warm_up: int, *, rate: float, value_bytes: int, linger_ms: int
) -> dict[str, float]:
    """Return mean and p99 of Java's producer (KIP-794) at this rate, after a warm-up."""
    java = shutil.which("java")
    if java is None:
        raise SystemExit("Java's producer needs a JDK: apt-get install openjdk-17-jdk-headless")
    properties = [f"bootstrap.servers={address}", f"linger.ms={linger_ms}", "batch.size=16384", "acks=1"]
    properties += ["enable.idempotence=false"]
    command = [java, "-cp", f"{jars()}/*", "org.apache.kafka.tools.ProducerPerformance", "--topic", TOPIC]
    command += ["--record-size", str(value_bytes), "--throughput", str(rate), "--warmup-records", str(warm_up)]
    command += ["--num-records", str(records + warm_up), "--producer-props", *properties]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    # The last line is of the records after the warm-up.
    found = _JAVAS_RESULT.findall(ran.stdout.strip().splitlines()[-1] if ran.stdout.strip() else "")
    if ran.returncode or not found:
        raise SystemExit(f"Java's producer failed: {ran.stdout}{ran.stderr}")
    return dict(zip(("mean ms", "p99 ms"), map(float, found[-1]), strict=True))
