"""What a process that Spark gives to the next task keeps: connections to Kafka, to be found as they were left; and
modules, which are not looked through for garbage after each task.
"""

from __future__ import annotations

import gc
from functools import partial

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ClusterMetadata
from topics import fill, until

from loadwise.coordinator import Coordinator
from loadwise.spark_source.cluster import client, offsets
from loadwise.spark_source.errors import ReadTimeoutError
from loadwise.spark_source.planning.query import checked, planned_by
from loadwise.spark_source.reading import batch_reader
from loadwise.spark_source.reading.arrow_batches import full_schema
from loadwise.spark_source.reading.tasks import read_task
from loadwise.spark_source.reuse import MOST, REUSED, Kept, exclude_what_is_loaded, made_from
from loadwise.spark_source.source import LoadwiseDataSource
from loadwise.spark_source.task import OffsetRange, Task


@pytest.fixture
def reused(monkeypatch):
    """This process is one that PySpark uses again."""
    monkeypatch.setenv(REUSED, "1")
    yield
    while client._KEPT._free:
        client._KEPT._free.popitem()[1].consumer.close()
    while batch_reader._KEPT._free:
        batch_reader._KEPT._free.popitem()[1].close()


@pytest.fixture
def cluster():
    with Coordinator({"t": 2, "u": 1}, brokers=2).in_thread() as running:
        fill(running.bootstrap_servers, "t", [30, 20], batch_records=10)
        fill(running.bootstrap_servers, "u", [5])
        yield running


def given(cluster, **more):
    return checked({"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "t"} | more)


def read(options, *ranges):
    task = Task("slot-0", tuple(OffsetRange(*item) for item in ranges), 0.0)
    batches = read_task(task, options, full_schema(include_headers=False))
    return [
        place
        for batch in batches
        for place in zip(batch["topic"].to_pylist(), batch["offset"].to_pylist(), strict=True)
    ]


ALL = [("t", 0, 0, 30), ("t", 1, 0, 20)]
FOUND = [("t", offset) for end in (30, 20) for offset in range(end)]


def test_the_next_task_reads_over_the_connections_of_the_one_before(cluster, reused):
    options = given(cluster)
    assert read(options, *ALL) == FOUND
    ((_, first),) = batch_reader._KEPT._free.items()
    made = dict(first.brokers._connections)
    assert read(options, ("u", 0, 1, 5), *ALL) == [("u", offset) for offset in range(1, 5)] + FOUND
    ((_, second),) = batch_reader._KEPT._free.items()
    assert second is first
    assert {address: second.brokers._connections[address] for address in made} == made


def test_nothing_is_kept_where_nobody_will_come(cluster, monkeypatch):
    monkeypatch.delenv(REUSED, raising=False)
    assert read(given(cluster), *ALL) == FOUND
    assert planned_by(given(cluster)).tasks
    assert not batch_reader._KEPT._free
    assert not client._KEPT._free


def test_connections_with_something_on_its_way_are_not_kept(cluster, reused):
    options = given(cluster, **{"kafka.max.partition.fetch.bytes": "100", "kafka.max.poll.records": "1"})
    task = Task("slot-0", (OffsetRange("t", 0, 0, 30),), 0.0)
    batches = read_task(task, options, full_schema(include_headers=False))
    next(batches)
    batches.close()  # as a query with LIMIT does
    assert not batch_reader._KEPT._free
    assert read(options, *ALL) == FOUND


def test_a_task_that_fails_leaves_nothing_behind(cluster, reused):
    options = given(cluster, **{"kafkaConsumer.pollTimeoutMs": "300"})
    with pytest.raises(ReadTimeoutError):
        read(options, ("t", 0, 0, 31))
    assert not batch_reader._KEPT._free
    assert read(given(cluster), *ALL) == FOUND


def test_a_connection_that_was_closed_meanwhile_is_made_anew(cluster, reused):
    options = given(cluster)
    assert read(options, *ALL) == FOUND
    ((_, kept),) = batch_reader._KEPT._free.items()
    for connection in kept.brokers._connections.values():
        kept.thread.run(_closed(connection))
    assert read(options, *ALL) == FOUND


async def _closed(connection):
    connection._writer.transport.abort()  # as when the broker ends it: nobody has called close()


def test_leaders_that_have_moved_meanwhile_are_found(cluster, reused):
    options = given(cluster)
    assert read(options, *ALL) == FOUND
    for partition in range(2):
        cluster.move_leader("t", partition)
    assert read(options, *ALL) == FOUND


def test_the_next_query_is_planned_by_the_client_of_the_one_before(cluster, reused):
    assert planned_by(given(cluster)).tasks[0].records == 50
    ((_, first),) = client._KEPT._free.items()
    first.complaint, first.doubtful, first.all_down = "what the other query saw", True, True
    fill(cluster.bootstrap_servers, "t", [7])
    assert planned_by(given(cluster, subscribe="t,u")).tasks[0].records == 62
    ((_, second),) = client._KEPT._free.items()
    assert second is first
    assert (second.complaint, second.doubtful, second.all_down) == ("", False, False)


def test_what_a_new_client_has_complained_of_already_is_not_forgotten(monkeypatch):
    """librdkafka tells once that no broker is there, perhaps before the first question."""
    connect = client.connect

    def heard_at_once(*arguments, **more):
        made = connect(*arguments, **more)
        until(lambda: bool(made.why()) and made.all_down, made.why)
        return made

    monkeypatch.setattr(client, "connect", heard_at_once)
    options = checked({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"})
    with client.kept_or_connected(options.client, group_id_prefix="test") as made:
        assert made.all_down


@pytest.mark.parametrize("often", ["", ", 30 identical error(s) suppressed"])
def test_a_complaint_is_told_without_how_long_and_how_often(often):
    class Consumer:
        def poll(self, _):
            """Nothing is waiting."""

    made = client.Client(Consumer(), None)
    text = f"127.0.0.1:1: Connect failed: Connection refused (after 12ms in state CONNECT{often})"
    made.note(KafkaError(KafkaError._TRANSPORT, text))
    assert made.complaint == "127.0.0.1:1: Connect failed: Connection refused"


def test_who_has_other_settings_is_given_another_client(cluster, reused):
    planned_by(given(cluster))
    planned_by(given(cluster, **{"kafka.client.id": "another"}))
    assert len(client._KEPT._free) == 2


def test_a_certificate_that_was_renewed_on_disk_makes_new_connections(tmp_path):
    file = tmp_path / "client.pem"
    file.write_text("one")
    settings = {"bootstrap.servers": "a:1", "ssl.certificate.location": str(file)}
    first = made_from(settings)
    assert made_from(settings) == first
    (tmp_path / "renewed").write_text("two")
    (tmp_path / "renewed").replace(file)
    assert made_from(settings) != first
    file.unlink()
    assert made_from(settings) not in (first, made_from({"bootstrap.servers": "a:1"}))


def test_the_longest_unused_goes_first():
    kept = Kept()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(REUSED, "1")
        ended = [kept.give(number, f"made from {number}") for number in range(MOST + 2)]
        assert ended == [*[[]] * MOST, ["made from 0"], ["made from 1"]]
        assert kept.give(3, "another made from 3") == ["made from 3"]
        assert kept.take(3) == "another made from 3"
        assert kept.take(3) is None
        patch.delenv(REUSED)
        assert kept.give(7, "made from 7") == ["made from 7"]


def test_a_login_that_was_refused_before_the_last_answer_ends_no_question_early(monkeypatch):
    """A stream keeps its client for as long as it runs, and its brokers may be down for half a minute later on."""
    now_s, down_until_s = [0.0], 0.0

    def pass_time(seconds):
        now_s[0] += seconds

    class Consumer:
        def poll(self, _):
            return None

        def list_topics(self, timeout):
            pass_time(timeout if now_s[0] < down_until_s else 0.0)
            if now_s[0] < down_until_s:
                raise KafkaException(KafkaError(KafkaError._TRANSPORT, "no connection"))
            (found := ClusterMetadata()).topics = {}
            return found

    monkeypatch.setattr(offsets, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(offsets, "sleep", pass_time)
    options = checked({"kafka.bootstrap.servers": "a:1", "subscribePattern": "t"})
    kept = client.Client(Consumer(), options.client)
    asking = offsets.Cluster(kept, 60_000)
    kept.note(KafkaError(KafkaError._AUTHENTICATION, "the login was refused"))
    assert asking.found(options).partitions == []
    down_until_s = 30.0
    assert asking.found(options).partitions == []
    assert now_s[0] >= down_until_s


def test_a_question_that_went_with_what_librdkafka_kept_of_a_broker_is_asked_again(monkeypatch):
    failures = [KafkaException(KafkaError(-137))]  # Local: Broker handle destroyed without termination

    class Consumer:
        def poll(self, _):
            return None

        def list_topics(self, **_):
            if failures:
                raise failures.pop()
            (found := ClusterMetadata()).topics = {}
            return found

    monkeypatch.setattr(offsets, "sleep", lambda _: None)
    options = checked({"kafka.bootstrap.servers": "a:1", "subscribePattern": "t"})
    assert offsets.Cluster(client.Client(Consumer(), options.client), 60_000).found(options).partitions == []


@pytest.fixture
def freezes(monkeypatch):
    """What was done to collections of garbage; this process of the tests' stays as it is."""
    done = []
    monkeypatch.setattr(gc, "freeze", lambda: done.append("frozen"))
    exclude_what_is_loaded.cache_clear()
    yield done
    exclude_what_is_loaded.cache_clear()


def test_each_kind_of_process_leaves_what_it_has_loaded_out_of_later_collections_once(cluster, reused, freezes):
    source = LoadwiseDataSource({"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "t"})
    reader = source.reader(full_schema(include_headers=False))
    reads = [partial(read, given(cluster, reader=name), *ALL) for name in ("batches", "messages")]
    for times, step in enumerate((source.schema, reader.partitions, *reads), 1):
        exclude_what_is_loaded.cache_clear()  # each step has a process of its own
        step()
        step()
        assert len(freezes) == times


def test_a_process_that_nobody_uses_again_is_left_alone(cluster, freezes, monkeypatch):
    monkeypatch.delenv(REUSED, raising=False)
    assert read(given(cluster), *ALL) == FOUND
    assert not freezes
