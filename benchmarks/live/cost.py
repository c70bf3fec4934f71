"""`python -m benchmarks.live.cost`: what watching a large group costs its leader.

A coordinator of ours in a process of its own stands for the cluster; the leader reads it as kafka-python's leader does.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from types import SimpleNamespace

from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from loadwise.assignor.clients.kafka_python.lag import KafkaPythonLag
from loadwise.assignor.participant import Participant
from loadwise.assignor.subscription import JoinedMember
from loadwise.protocol.consumer import Subscription

_COMMITTED_AT_ONCE = 2_000


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.cost", description=__doc__)
    parser.add_argument("--members", type=int, default=500)
    parser.add_argument("--partitions", type=int, default=20_000)
    parser.add_argument("--readings", type=int, default=5)
    args = parser.parse_args()
    command = [sys.executable, "-m", "loadwise", "coordinator", "--listen", "127.0.0.1:0"]
    command += ["--topic", f"t:{args.partitions}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            servers = broker.stdout.readline().split()[-1]
            _commit(servers, args.partitions)
            _measure(servers, args.members, args.partitions, args.readings)
        finally:
            broker.terminate()


def _measure(servers: str, members: int, partitions: int, readings: int) -> None:
    lag = KafkaPythonLag("t", group_id="g", bootstrap_servers=servers)
    leader = Participant("weighted")
    leader.lead_by(lag, True, slack_s=6.0)
    lag.start(at_once=False)
    try:
        joined = [
            JoinedMember(id=f"m{number:04}", subscription=Subscription.decode(leader.subscription(["t"])))
            for number in range(members)
        ]
        cluster = SimpleNamespace(partition_count={"t": partitions}.get, replica_racks=lambda _: ())
        assigning = _cpu(lambda: leader.assign(joined, cluster))
        assert leader.leader is not None
        leader.leader.joined(None, 1)
        lag.set_interval(float("inf"))  # read when it is asked for
        first, *each = [_cpu(lambda: _read(lag)) for _ in range(readings + 1)]
    finally:
        lag.close()
    print(f"{members:,} members, {partitions:,} partitions")
    print(f"leader, one assignment: {assigning:.2f} s of CPU")
    print(
        f"leader, one reading of all offsets and the decision: {median(each):.2f} s of CPU;"
        f" the first one, with metadata and what arrived in the minute before: {first:.2f} s"
    )


def _commit(servers: str, partitions: int) -> None:
    consumer = KafkaConsumer(bootstrap_servers=servers, group_id="g", enable_auto_commit=False)
    try:
        everything = [TopicPartition("t", number) for number in range(partitions)]
        consumer.assign(everything)
        for start in range(0, partitions, _COMMITTED_AT_ONCE):
            some = everything[start : start + _COMMITTED_AT_ONCE]
            consumer.commit({each: OffsetAndMetadata(0, "", -1) for each in some})
    finally:
        consumer.close()


def _read(lag: KafkaPythonLag) -> None:
    lag.refresh()
    assert lag.wait(120.0)
    assert not lag.failures


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
