"""A real Apache Kafka of three nodes, each a broker and a controller: for what happens when one of them dies."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kafka_process import (
    SETTINGS,
    BrokerProcess,
    format_storage,
    java_program,
    new_cluster_id,
    reserved_port,
    short_lived_jvm,
    wait_until_ready,
)

NODES = (1, 2, 3)
_SETTINGS = {
    **SETTINGS,
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "auto.leader.rebalance.enable": "false",
}
_MISSED_SOON = {
    "broker.heartbeat.interval.ms": "250",
    "broker.session.timeout.ms": "6000",
    "replica.lag.time.max.ms": "6000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "3000",
}
"""A node that is dead is missed within six seconds, and so is one that a busy machine lets stand still for as long."""
_MISSED_LATE = {"broker.session.timeout.ms": "60000", "replica.lag.time.max.ms": "60000"}


@contextlib.contextmanager
def three_kafkas(
    *,
    missed_soon: bool,
    more: Mapping[int, Mapping[str, str]] | None = None,
    beside: Mapping[int, Sequence[Path]] | None = None,
) -> Iterator[dict[int, BrokerProcess]]:
    """Run three nodes for the length of a with block; answers them by their ids.

    ``more`` are settings and ``beside`` jars of plug-ins, by node. Raises `KafkaNotInstalledError` where a JDK or Maven
    is missing.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="apache-kafkas-")))
        addresses = {node: f"127.0.0.1:{stack.enter_context(reserved_port())}" for node in NODES}
        controllers = {node: f"127.0.0.1:{stack.enter_context(reserved_port())}" for node in NODES}
        cluster_id = new_cluster_id()
        nodes = {}
        for node in NODES:
            settings = {
                **_SETTINGS,
                **(_MISSED_SOON if missed_soon else _MISSED_LATE),
                "node.id": str(node),
                "listeners": f"PLAINTEXT://{addresses[node]},CONTROLLER://{controllers[node]}",
                "advertised.listeners": f"PLAINTEXT://{addresses[node]}",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
                "controller.quorum.voters": ",".join(f"{each}@{address}" for each, address in controllers.items()),
                "log.dirs": f"{folder}/data-{node}",
                **(more or {}).get(node, {}),
            }
            properties = folder / f"{node}.properties"
            properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            jars = (beside or {}).get(node, ())
            format_storage(properties, cluster_id, jvm=short_lived_jvm(), beside=jars)
            command = [*java_program("kafka.Kafka", "-Xmx384m", *short_lived_jvm(), beside=jars), str(properties)]
            nodes[node] = BrokerProcess(command, folder / f"{node}.log", addresses[node])
        try:
            for each in nodes.values():
                each.launch()
            for each in nodes.values():
                wait_until_ready(each.address, each.ended, brokers=len(NODES))
            yield nodes
        finally:
            for each in nodes.values():
                each.kill()
