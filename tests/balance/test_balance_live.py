"""A running cluster of three brokers, read, planned, and changed as planned: our coordinator."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Called, invoke
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka import TopicPartition
from skewed_topics import PLACED, RECORD_BYTES, described, make_skewed_topics, produce
from topics import WAIT_S

from loadwise.balance.cluster import Cluster
from loadwise.balance.errors import ChangedClusterError, UnreadableClusterError
from loadwise.balance.live import check_unchanged, read_cluster
from loadwise.balance.plan import plan
from loadwise.coordinator import Authorization, Coordinator, Fault, Faults, Security, ThreadedCoordinator
from loadwise.running_group.admin import GroupAdmin, connected


@pytest.fixture
def brokers() -> Iterator[ThreadedCoordinator]:
    with Coordinator(brokers=3, racks=("a", "b", "c")).in_thread() as running:
        make_skewed_topics(running.bootstrap_servers, "")
        yield running


class Arrivals:
    """A clock that moves only while the reader sleeps; meanwhile records arrive."""

    def __init__(self, bootstrap_servers: str, records: dict[str, list[int]]) -> None:
        self._servers, self._records, self._now_s = bootstrap_servers, records, 0.0

    def sleep(self, seconds: float) -> None:
        for topic, counts in self._records.items():
            produce(self._servers, topic, counts)
        self._now_s += seconds

    def clock(self) -> float:
        return self._now_s


def _read(brokers: ThreadedCoordinator, admin: GroupAdmin, **records: list[int]) -> Cluster:
    arrivals = Arrivals(brokers.bootstrap_servers, records)
    return read_cluster(admin, over_s=10, reads=3, sleep=arrivals.sleep, clock=arrivals.clock)


def _run(brokers: ThreadedCoordinator, *arguments: str | Path) -> Called:
    servers = brokers.bootstrap_servers
    return invoke(["balance", "--bootstrap-servers", servers, "--interval", "0.1", *map(str, arguments)])


def test_a_cluster_is_read_as_it_is(brokers: ThreadedCoordinator, admin: GroupAdmin) -> None:
    cluster = _read(brokers, admin, orders=[0, 100, 0, 0, 50])
    assert [(broker.id, broker.rack) for broker in cluster.brokers] == [(1, "a"), (2, "b"), (3, "c")]
    placed = {(each.topic, each.partition): (list(each.replicas), each.leader) for each in cluster.partitions}
    assert placed == described(brokers.bootstrap_servers, "")
    by_name = {each.name: each for each in cluster.partitions}
    assert by_name["orders-5"].size_bytes == pytest.approx(70 * RECORD_BYTES, rel=0.1)
    assert by_name["orders-1"].bytes_in_per_s == pytest.approx(10 * RECORD_BYTES, rel=0.1)
    assert by_name["orders-4"].bytes_in_per_s == pytest.approx(5 * RECORD_BYTES, rel=0.1)
    assert by_name["orders-4"].bytes_out_per_s == 3 * by_name["orders-4"].bytes_in_per_s
    assert {each.name for each in cluster.partitions if each.bytes_in_per_s} == {"orders-1", "orders-4"}


def test_the_mean_size_of_records_that_were_deleted_is_that_of_the_topic(
    brokers: ThreadedCoordinator, admin: GroupAdmin
) -> None:
    produce(brokers.bootstrap_servers, "orders", [10])
    partition = TopicPartition("orders", 0)

    def delete(_: float) -> None:
        produce(brokers.bootstrap_servers, "orders", [10])
        admin.delete_records({partition: 40})

    ticks = iter([0.0, 1.0])
    cluster = read_cluster(admin, over_s=1, reads=1, sleep=delete, clock=lambda: next(ticks))
    assert cluster.partitions[[each.name for each in cluster.partitions].index("orders-0")].bytes_in_per_s == (
        pytest.approx(10 * RECORD_BYTES, rel=0.1)
    )


def test_the_planned_cluster_comes_true(brokers: ThreadedCoordinator, tmp_path: Path) -> None:
    result = _run(brokers, "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    planned = described(brokers.bootstrap_servers, "")
    batches = sorted(tmp_path.glob("batch-??.json"))
    reassignment = [each for batch in batches for each in json.loads(batch.read_text())["partitions"]]
    of_leaders = sorted(tmp_path.glob("batch-*-leaders.json"))
    elections = [each for batch in of_leaders for each in json.loads(batch.read_text())["partitions"]]
    for each in reassignment:
        name = (each["topic"], each["partition"])
        planned[name] = (each["replicas"], planned[name][1])
    for each in elections:
        name = (each["topic"], each["partition"])
        planned[name] = (planned[name][0], planned[name][0][0])
    with connected(brokers.bootstrap_servers, client_id="test") as admin:
        changed = admin.alter_partition_reassignments(
            {TopicPartition(each["topic"], each["partition"]): each["replicas"] for each in reassignment}
        )
        assert set(changed.values()) == {None}
        by_topic = {name: [each["partition"] for each in elections if each["topic"] == name] for name in PLACED}
        admin.elect_leaders(0, {name: numbers for name, numbers in by_topic.items() if numbers})
    assert described(brokers.bootstrap_servers, "") == planned
    again = json.loads(_run(brokers, "--json").stdout)
    assert again["reassignment"]["partitions"] == again["leader_election"]["partitions"] == []


def test_a_saved_cluster_is_planned_again_alike(brokers: ThreadedCoordinator, tmp_path: Path) -> None:
    saved = tmp_path / "cluster.json"
    told = _run(brokers, "--save", saved, "--json")
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["reassignment"]["partitions"]
    assert invoke(["balance", str(saved), "--json"]).stdout == told.stdout


def test_a_broker_that_is_down_has_offline_replicas(brokers: ThreadedCoordinator) -> None:
    brokers.stop_broker(3)
    result = _run(brokers)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the replica of partition audit-0 on broker 3 is offline; start that broker" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (
            lambda faults: faults.answer("DescribeLogDirs", "KAFKA_STORAGE_ERROR", broker=2),
            "KafkaStorageError: broker 2 does not describe its log directories; repair its disk",
        ),
        (lambda faults: faults.answer("DescribeLogDirs", "CLUSTER_AUTHORIZATION_FAILED"), "give the user the right to"),
        (lambda faults: faults.disconnect("DescribeLogDirs", times=None, broker=2), "broker 2: socket disconnected"),
    ],
)
def test_the_broker_that_does_not_answer_is_named(
    fault: Callable[[Faults], Fault], reason: str, brokers: ThreadedCoordinator
) -> None:
    with connected(brokers.bootstrap_servers, client_id="test") as admin:
        fault(brokers.faults)
        with pytest.raises(UnreadableClusterError, match=reason):
            _read(brokers, admin)


def test_a_broker_that_is_silent_is_named(brokers: ThreadedCoordinator, admin: GroupAdmin) -> None:
    send = admin._manager.send

    def hurried(request: Any, node_id: int | None = None, **options: Any) -> Any:
        return send(request, node_id=node_id, **options | ({"request_timeout_ms": 300} if node_id == 2 else {}))

    admin._manager.send = hurried
    brokers.faults.drop("DescribeLogDirs", broker=2)
    with pytest.raises(UnreadableClusterError, match="broker 2: Request timed out after "):
        _read(brokers, admin)


def test_a_user_without_the_right_to_describe(tmp_path: Path) -> None:
    security = Security(users={"admin": "a", "bob": "b"}, authorization=Authorization(super_users=["User:admin"]))
    config = tmp_path / "client.properties"
    login = 'sasl.jaas.config=PlainLoginModule required username="bob" password="b";'
    config.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{login}\n")
    with Coordinator(security=security).in_thread() as running:
        running.create_topic("hidden", 1)

        def refusal() -> str:
            asked = ["--bootstrap-servers", running.bootstrap_servers, "--command-config", str(config)]
            result = invoke(["balance", *asked, "--interval", "0.1"])
            assert (result.exit_code, result.stdout) == (1, "")
            return result.stderr

        assert "ClusterAuthorizationFailedError; give the user the right to DESCRIBE the cluster" in refusal()
        settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "log_level": 0}
        login_of_admin = {"sasl.username": "admin", "sasl.password": "a"}
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers, **settings, **login_of_admin})
        right = (AclOperation.DESCRIBE, AclPermissionType.ALLOW)
        acl = AclBinding(ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, "User:bob", "*", *right)
        for made in admin.create_acls([acl]).values():
            made.result(WAIT_S)
        assert "broker 1 has partition hidden-0, which is not described; give the user the right" in refusal()


def test_a_topic_without_a_leader(brokers: ThreadedCoordinator) -> None:
    brokers.drop_leader("orders", 4)
    result = _run(brokers)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "partition orders-4 has no leader; start a broker with an in-sync replica, one of 1, 2" in result.stderr


def test_a_cluster_that_changes_while_it_is_read(brokers: ThreadedCoordinator, admin: GroupAdmin) -> None:
    with pytest.raises(ChangedClusterError, match=r"orders-2 had replicas 1, 2 led by 1, and now has .* led by 2; run"):
        read_cluster(admin, over_s=1, reads=1, sleep=lambda _: brokers.move_leader("orders", 2, 2))


def test_a_topic_that_is_deleted_while_the_cluster_is_read(brokers: ThreadedCoordinator, admin: GroupAdmin) -> None:
    with pytest.raises(ChangedClusterError, match=r"changed during planning: .*'orders'.*; run this again"):
        read_cluster(admin, over_s=1, reads=1, sleep=lambda _: admin.delete_topics(["orders"]))


def test_a_topic_that_is_created_while_the_cluster_is_read_is_left_out(
    brokers: ThreadedCoordinator, admin: GroupAdmin
) -> None:
    before = _read(brokers, admin)

    def create(_: float) -> None:
        brokers.create_topic("new", 2)
        orders = [each for each in before.partitions if each.topic == "orders"]
        admin.create_partitions({"orders": len(orders) + 1})
        produce(brokers.bootstrap_servers, "new", [5, 5])

    cluster = read_cluster(admin, over_s=1, reads=1, sleep=create)
    assert [(each.topic, each.partition) for each in cluster.partitions] == [
        (each.topic, each.partition) for each in before.partitions
    ]
    check_unchanged(admin, cluster)


def test_a_cluster_that_changes_while_it_is_planned(brokers: ThreadedCoordinator, admin: GroupAdmin) -> None:
    cluster = _read(brokers, admin)
    plan(cluster)
    brokers.create_topic("new", 1)
    check_unchanged(admin, cluster)
    brokers.move_leader("orders", 2, 2)
    with pytest.raises(ChangedClusterError, match="partition orders-2 had replicas 1, 2 led by 1, and now has"):
        check_unchanged(admin, cluster)


def test_capacities_of_a_running_cluster(brokers: ThreadedCoordinator, tmp_path: Path) -> None:
    path = tmp_path / "capacities.json"
    path.write_text('{"3": {"disk_bytes": 0}}')
    told = json.loads(_run(brokers, "--capacities", path, "--json").stdout)
    assert [broker["after"]["disk_bytes"] > 0 for broker in told["brokers"]] == [True, True, False]


def test_a_cluster_is_a_file_or_a_running_one(brokers: ThreadedCoordinator) -> None:
    assert "two clusters given" in _run(brokers, "cluster.json").stderr
    assert "no cluster given" in invoke(["balance"]).stderr
    assert "--interval, --reads and --command-config need" in invoke(["balance", "x.json", "--reads", "2"]).stderr


def _answer_with(admin: GroupAdmin, monkeypatch: pytest.MonkeyPatch, *states: dict[str, Any]) -> None:
    """Let the brokers describe partition orders-0 in these states, one description after the other, then the last."""
    described_topics, left = admin.describe_topics, list(states)

    def describe(*arguments: Any) -> Any:
        topics = described_topics(*arguments)
        (orders,) = (topic for topic in topics if topic["name"] == "orders")
        orders["partitions"][0].update(left.pop(0) if len(left) > 1 else left[0])
        return topics

    monkeypatch.setattr(admin, "describe_topics", describe)


def test_in_sync_replicas_are_read(
    brokers: ThreadedCoordinator, admin: GroupAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(each.in_sync is None for each in _read(brokers, admin).partitions)
    _answer_with(admin, monkeypatch, {"partition_index": 0, "isr_nodes": [1]})
    by_name = {each.name: each for each in _read(brokers, admin).partitions}
    assert by_name["orders-0"].out_of_sync == (2,)
    assert sum(bool(each.out_of_sync) for each in by_name.values()) == 1


def test_a_replica_that_falls_out_of_sync_while_the_cluster_is_read(
    brokers: ThreadedCoordinator, admin: GroupAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answer_with(admin, monkeypatch, {"isr_nodes": [1, 2]}, {"isr_nodes": [1]})
    with pytest.raises(ChangedClusterError, match="partition orders-0 on broker 2 is no longer in sync; run this"):
        _read(brokers, admin)


def test_a_partition_that_is_being_reassigned_stays_as_it_is(
    brokers: ThreadedCoordinator, admin: GroupAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way = {TopicPartition("orders", 0): None}
    monkeypatch.setattr(admin, "list_partition_reassignments", lambda: under_way)
    cluster = _read(brokers, admin)
    assert [each.name for each in cluster.partitions if each.is_reassigned] == ["orders-0"]
    assert "orders-0" not in [each.name for each in plan(cluster).reassigned]
    brokers.move_leader("orders", 0, 2)
    check_unchanged(admin, cluster)
    under_way[TopicPartition("orders", 1)] = None
    with pytest.raises(ChangedClusterError, match="partition orders-1 is now being reassigned; run this again"):
        check_unchanged(admin, cluster)
