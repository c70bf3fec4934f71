"""The dispatcher with a client of the test's own and a clock that it steps."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_pythons_murmur2
from topics import until

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.load.source import FixedLoad
from loadwise.dispatcher import BadDispatcherError, Dispatcher
from loadwise.dispatcher.background import pause_s
from loadwise.dispatcher.keys import murmur2
from loadwise.dispatcher.spread_keys import SpreadKeys

BATCH = 1000
UNEVEN = {partition: 1 if partition < 6 else 2 if partition < 8 else 3 for partition in range(9)}


class Client:
    """A client whose metadata the test sets."""

    def __init__(self, leaders: Mapping[int, int] = UNEVEN) -> None:
        self.its_leaders = leaders

    def leaders(self, topic: str) -> Mapping[int, int]:
        return self.its_leaders if topic == "t" else {}

    def partition_count(self, topic: str) -> int:
        return len(self.leaders(topic))


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Scene:
    """A dispatcher, and brokers that acknowledge each batch after their own time."""

    def __init__(self, **options: object) -> None:
        self.client, self.clock = Client(), Clock()
        self.dispatcher = Dispatcher(clock=self.clock, **options)
        self.dispatcher.follow(self.client, batch_bytes=BATCH)

    def batches(self, count: int, took_s: Mapping[int, float] | None = None) -> Counter[int]:
        """Fill as many batches; return how many each broker got."""
        found: Counter[int] = Counter()
        for _ in range(count):
            partition = self.dispatcher.partition("t", size=BATCH)
            node = self.client.its_leaders.get(partition, -1)
            found[node] += 1
            self.dispatcher.sent(node)
            if took_s is not None and node in took_s:
                self.dispatcher.acknowledged(node, took_s[node], BATCH)
        return found


@given(st.binary(max_size=40))
def test_keys_hash_as_in_java(key: bytes) -> None:
    assert murmur2(key) == kafka_pythons_murmur2(key)


def test_a_key_stays_where_kafka_puts_it_whatever_brokers_do() -> None:
    scene = Scene()
    scene.batches(10, {2: 0.1})
    scene.dispatcher.failed(1)
    assert all(
        scene.dispatcher.partition("t", key) == (kafka_pythons_murmur2(key) & 0x7FFFFFFF) % 9
        for key in (b"", b"a", b"billing", bytes(100))
    )


def test_only_the_keys_of_topics_that_are_named_are_spread() -> None:
    scene = Scene(spread={"t": SpreadKeys(choices=2)})
    assert len({scene.dispatcher.partition("t", b"key", 10) for _ in range(9)}) == 9
    assert not scene.dispatcher.spreads("other")
    scene.client.its_leaders = dict.fromkeys(range(20), 1)
    assert max(scene.dispatcher.partition("t", b"key", 10) for _ in range(20)) == 19, "the topic has grown"


def test_without_scores_all_partitions_take_turns() -> None:
    scene = Scene()
    assert Counter(scene.dispatcher.partition("t", size=BATCH) for _ in range(90)) == dict.fromkeys(range(9), 10)


def test_brokers_get_batches_by_their_scores() -> None:
    scene = Scene(metrics={"network": {1: 400, 2: 200, 3: 200}}, weights={"latency": 0, "in_flight": 0})
    assert scene.batches(100, dict.fromkeys([1, 2, 3], 0.1)) == {1: 20, 2: 40, 3: 40}


def test_a_batch_is_filled_before_the_next_partition_has_its_turn() -> None:
    scene = Scene()
    places = [scene.dispatcher.partition("t", size=BATCH // 5) for _ in range(36)]
    assert sorted(places[::4]) == list(range(9))
    assert all(len(set(places[first : first + 4])) == 1 for first in range(0, 36, 4))


def test_a_slow_broker_gets_less_as_soon_as_batches_wait_for_it_and_after_the_lease() -> None:
    scene = Scene()
    assert scene.batches(90, {1: 0.01, 2: 0.01})[3] < 10, "its batches wait, and those of the others do not"
    for _ in range(10):
        scene.dispatcher.acknowledged(3, 1.0, BATCH)
    scene.clock.now_s = 4.0
    after = scene.batches(100, {1: 0.01, 2: 0.01, 3: 1.0})
    assert after[3] < 5
    assert abs(after[1] - after[2]) <= 2


def test_a_silent_broker_gets_nothing_until_it_answers() -> None:
    scene = Scene()
    took = {1: 0.01, 2: 0.01}
    assert scene.batches(30, took)[3]
    scene.clock.now_s = 3.0
    scene.batches(3, took)
    assert scene.batches(100, took)[3] == 0
    scene.clock.now_s = 60.0
    assert scene.batches(100, took)[3] == 0, "batches wait for it, which are probes enough"
    for _ in range(30):
        scene.dispatcher.acknowledged(3, 50.0, BATCH)
    for _ in range(12):
        scene.clock.now_s += 4
        after = scene.batches(300, {**took, 3: 0.01})
    assert after[3] == pytest.approx(100, abs=10)


def test_a_broker_that_fails_gets_one_record_a_lease() -> None:
    scene = Scene()
    scene.batches(30, dict.fromkeys([1, 2, 3], 0.01))
    scene.dispatcher.failed(2)
    for _ in range(3):
        scene.clock.now_s += 4
        places = [scene.client.its_leaders[scene.dispatcher.partition("t", size=BATCH // 4)] for _ in range(400)]
        assert places.count(2) == 1
        scene.dispatcher.sent(2)
        scene.dispatcher.failed(2)
    scene.clock.now_s += 4
    scene.dispatcher.partition("t", size=BATCH)
    scene.dispatcher.acknowledged(2, 0.01, BATCH)
    assert scene.batches(100, dict.fromkeys([1, 2, 3], 0.01))[2] > 10


def test_a_topic_that_refuses_its_records_takes_no_broker_from_the_others() -> None:
    scene = Scene()
    found: Counter[int] = Counter()
    for _ in range(90):
        scene.clock.now_s += 0.5
        scene.dispatcher.sent(1)
        scene.dispatcher.refused(1)
        found += scene.batches(1, dict.fromkeys([1, 2, 3], 0.01))
    assert min(found.values()) > 20, found


def test_a_turn_of_a_broker_that_stopped_answering_ends() -> None:
    scene = Scene()
    node = UNEVEN[scene.dispatcher.partition("t", size=1)]
    scene.dispatcher.sent(node)
    scene.clock.now_s = 2.0
    assert UNEVEN[scene.dispatcher.partition("t", size=1)] != node


def test_a_mapping_that_breaks_later_is_logged_and_its_last_loads_stay(caplog: pytest.LogCaptureFixture) -> None:
    cpu: dict[int, object] = {1: 1, 2: 1, 3: 100}
    scene = Scene(metrics={"cpu": cpu}, weights={"latency": 0, "in_flight": 0})
    cpu[2] = "much"
    scene.batches(1)
    scene.clock.now_s += 4
    scene.batches(1)
    assert ["metric 'cpu' failed" in record.getMessage() for record in caplog.records] == [True]


def test_if_no_broker_answers_all_of_them_stay_in_use() -> None:
    scene = Scene()
    scene.batches(30)
    scene.clock.now_s = 60.0
    assert scene.batches(300).keys() == {1, 2, 3}


def test_a_batch_that_was_sent_early_ends_the_turn_and_counts_by_its_bytes() -> None:
    scene = Scene(metrics={"network": {1: 1, 2: 1, 3: 1}}, weights={"latency": 0, "in_flight": 0})
    sent: Counter[int] = Counter()
    last = -1
    for _ in range(3000):
        partition = scene.dispatcher.partition("t", size=0)
        if partition != last or UNEVEN[partition] != 2:  # broker 2 is slow: the batch is open for the next record
            scene.dispatcher.on_new_batch("t", partition)
            partition = scene.dispatcher.partition("t", size=0)
        sent[UNEVEN[partition]] += 1
        last = partition
    assert max(sent.values()) / min(sent.values()) < 1.2


def test_a_new_turn_keeps_its_partition_when_its_batch_is_begun() -> None:
    scene = Scene()
    first = scene.dispatcher.partition("t", size=10)
    scene.dispatcher.on_new_batch("t", first)
    assert scene.dispatcher.partition("t", size=10) == first


def test_related_records_go_to_one_partition_of_the_best_broker() -> None:
    scene = Scene(metrics={"cpu": {1: 9, 2: 1, 3: 8}}, weights={"latency": 0, "in_flight": 0})
    with scene.dispatcher.related():
        found = {scene.dispatcher.partition("t", size=BATCH) for _ in range(50)}
        elsewhere: set[int] = set()
        thread = threading.Thread(
            target=lambda: elsewhere.update(scene.dispatcher.partition("t", size=BATCH) for _ in range(50))
        )
        thread.start()
        thread.join()
    assert len(found) == 1
    assert UNEVEN[found.pop()] == 2
    assert len(elsewhere) > 3
    assert len({scene.dispatcher.partition("t", size=BATCH) for _ in range(50)}) > 3


async def test_a_task_that_outlives_the_block_of_related_records_is_free() -> None:
    scene = Scene()
    ended = asyncio.Event()

    async def after() -> set[int]:
        await ended.wait()
        return {scene.dispatcher.partition("t", size=BATCH) for _ in range(9)}

    with scene.dispatcher.related():
        scene.dispatcher.partition("t", size=BATCH)
        task = asyncio.create_task(after())
    ended.set()
    assert len(await task) > 3
    assert not scene.dispatcher._topics["t"].blocks


def test_blocks_of_related_records_are_those_of_their_dispatcher() -> None:
    one, other = Scene(), Scene()

    def places(scene: Scene) -> set[int]:
        return {scene.dispatcher.partition("t", size=BATCH) for _ in range(9)}

    with one.dispatcher.related():
        assert len(places(other)) > 3
        with other.dispatcher.related():
            assert [len(places(one)), len(places(other))] == [1, 1]


def test_reading_often_does_not_take_more_than_a_hundredth_of_a_core() -> None:
    assert pause_s(4.0, busy_s=0.01) == 4.0
    assert pause_s(4.0, busy_s=0.5) == 50.0
    assert pause_s(None, busy_s=0.5) is None


def test_a_function_is_read_in_the_background_and_its_last_loads_stay_while_it_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = [ValueError("no route"), OSError("no route"), {1: 1, 2: 1, 3: 100}, None, ValueError("again"), {"x": 1}]
    asked: list[str] = []

    def cpu() -> object:
        answer = answers[len(asked)]
        asked.append(threading.current_thread().name)
        if isinstance(answer, Exception):
            raise answer
        return answer

    scene = Scene(metrics={"cpu": cpu}, weights={"latency": 0, "in_flight": 0})
    reader = scene.dispatcher._metrics["cpu"]
    shares = []
    for lease in range(len(answers)):
        shares.append(scene.batches(90, dict.fromkeys([1, 2, 3], 0.01))[3])
        until(lambda lease=lease: reader.readings == lease + 1, lambda: asked)
        scene.clock.now_s += 4
    assert set(asked) == {"loadwise-metric 'cpu'"}
    assert shares[:3] == [10, 10, 10], "round robin over partitions"
    assert max(shares[3:]) < 3, "the old table stays"
    warning = "metric 'cpu' cannot be read; the last values are used until it can: ValueError"
    assert [record.getMessage().partition("(")[0] for record in caplog.records] == [warning, warning]


def test_the_loads_of_partitions_count_for_their_leaders(caplog: pytest.LogCaptureFixture) -> None:
    source = FixedLoad(load={"t": [1, 0, 0, 0, 0, 0, None, 1, 100], "other": [10**6]})
    scene = Scene(metrics={"lag": source}, weights={"latency": 0, "in_flight": 0})
    found = scene.batches(100, dict.fromkeys([1, 2, 3], 0.01))
    assert found[1] == pytest.approx(49, abs=2)
    assert found[2] == pytest.approx(49, abs=2)

    class Broken:
        def snapshot(self, _: object) -> None:
            raise BadGroupError("a load of -1")

    scene = Scene(metrics={"lag": Broken()}, weights={"latency": 0, "in_flight": 0})
    assert scene.batches(90, dict.fromkeys([1, 2, 3], 0.01)) == {1: 60, 2: 20, 3: 10}
    scene.clock.now_s += 4
    scene.batches(1)
    assert [record.getMessage() for record in caplog.records] == [
        "metric 'lag' failed; its last loads are used until it works: a load of -1"
    ]


@pytest.mark.parametrize("error", [RuntimeError("down"), OverflowError("too large")])
def test_a_load_source_that_raises_is_logged_and_stops_no_record(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def snapshot(self, _: object) -> None:
            raise error

    scene = Scene(metrics={"lag": Broken()}, weights={"latency": 0, "in_flight": 0})
    assert scene.batches(90, dict.fromkeys([1, 2, 3], 0.01)) == {1: 60, 2: 20, 3: 10}
    assert ["metric 'lag' failed" in record.getMessage() for record in caplog.records] == [True]


def test_a_metric_of_unknown_brokers_only_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(metrics={"cpu": {98: 5, 99: 1}, "disk": {"1": 400, "2": 200, "3": 200}})
    for _ in range(3):
        scene.batches(10)
        scene.clock.now_s += 4
    assert [record.getMessage() for record in caplog.records] == [
        "metric 'cpu' has loads of brokers [98, 99], of none that leads partitions ([1, 2, 3]): give loads by node id"
    ]


def test_a_topic_that_lost_its_leaders_keeps_its_table() -> None:
    scene = Scene(metrics={"cpu": {1: 1, 2: 1, 3: 100}}, weights={"latency": 0, "in_flight": 0})
    before = scene.batches(100, dict.fromkeys([1, 2, 3], 0.01))
    scene.client.its_leaders = dict.fromkeys(range(9), -1)
    scene.clock.now_s += 4
    places = Counter(UNEVEN[scene.dispatcher.partition("t", size=BATCH)] for _ in range(100))
    assert places[3] == pytest.approx(before[3], abs=2)


def test_a_topic_that_never_had_a_leader_is_shared_evenly() -> None:
    scene = Scene()
    scene.client.its_leaders = dict.fromkeys(range(9), -1)
    assert {scene.dispatcher.partition("t", size=BATCH) for _ in range(9)} == set(range(9))


def test_an_unknown_topic_has_no_partition() -> None:
    scene = Scene()
    assert scene.dispatcher.partition("other") == scene.dispatcher.partition("other", b"key") == -1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"weights": {"latencies": 1}}, "'latencies'"),
        ({"weights": {"latency": -1}}, "'latency'"),
        ({"weights": {"latency": 0, "in_flight": 0}}, "all metrics are 0"),
        ({"metrics": {"latency": {}}}, "latency"),
        ({"lease_s": 0}, "lease_s"),
        ({"metrics": {"cpu": 5}}, "'cpu' is 5"),
        ({"metrics": {"cpu": {1: "much"}}}, "map node ids to numbers"),
        ({"weights": {"latency": "2"}}, "'latency' is '2'"),
        ({"lease_s": "4"}, "lease_s is '4'"),
        ({"weights": ["latency"]}, "weights is"),
        ({"metrics": [1]}, "metrics is"),
        ({"metrics": {"cpu": [1]}}, "'cpu' is"),
        ({"metrics": {"cpu": {1: 10**400}}}, "map node ids to numbers"),
        ({"spread": ["clicks"]}, "spread is"),
        ({"spread": {"clicks": 3}}, "spread has 3 for topic clicks; it must be a SpreadKeys"),
    ],
)
def test_a_wrong_argument_is_refused_at_once(options: dict[str, object], named: str) -> None:
    with pytest.raises(BadDispatcherError, match=named):
        Dispatcher(**options)


def test_a_dispatcher_serves_one_producer() -> None:
    scene = Scene()
    with pytest.raises(BadDispatcherError, match="another producer"):
        scene.dispatcher.follow(Client())
