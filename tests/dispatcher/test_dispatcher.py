"""The dispatcher with a client of the test's own and a clock that it steps."""

from __future__ import annotations

import asyncio
import threading
from asyncio import CancelledError
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_pythons_murmur2
from own_log import own_log
from topics import until

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.load.background import Background, pause_s
from loadwise.assignor.load.drain import DrainLoad
from loadwise.assignor.load.lag import LagLoad
from loadwise.assignor.load.mix import MixedLoad
from loadwise.assignor.load.rate import RateLoad
from loadwise.assignor.load.source import FixedLoad
from loadwise.dispatcher import BadDispatcherError, Dispatcher
from loadwise.dispatcher.acknowledgements import Batch
from loadwise.dispatcher.keys import murmur2
from loadwise.dispatcher.spread_keys import SpreadKeys

BATCH = 1000
UNEVEN = {partition: 1 if partition < 6 else 2 if partition < 8 else 3 for partition in range(9)}


class Client:
    """A client whose metadata the test sets."""

    def __init__(self, leaders: Mapping[int, int] = UNEVEN) -> None:
        self.its_leaders = leaders

    def leaders(self, topic: str) -> Mapping[int, int]:
        return self.its_leaders if topic in {"t", "rare"} else {}

    def partition_count(self, topic: str) -> int:
        return len(self.leaders(topic))


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Scene:
    """A dispatcher, and brokers that acknowledge each batch after their own time."""

    def __init__(self, *, linger_s: float = 0.0, **options: object) -> None:
        self.client, self.clock = Client(), Clock()
        self.dispatcher = Dispatcher(clock=self.clock, **options)
        self.dispatcher.follow(self.client, batch_bytes=BATCH, linger_s=linger_s)
        self.waiting: dict[int, list[Batch]] = {}

    def begun(self, node: int) -> None:
        """A batch for this broker was begun, of no topic in particular."""
        self._begun(node, "", -1)

    def all_acknowledged(self, node: int, took_s: float) -> None:
        """The broker acknowledged all its batches."""
        while self.waiting[node]:
            self.dispatcher.acknowledged(self.waiting[node].pop(0), took_s, BATCH)

    def failed(self, node: int) -> None:
        """The broker's oldest batch failed."""
        self.dispatcher.failed(self.waiting[node].pop(0))

    def batches(self, count: int, took_s: Mapping[int, float] | None = None, topic: str = "t") -> Counter[int]:
        """Fill as many batches; return how many each broker got."""
        found: Counter[int] = Counter()
        for _ in range(count):
            partition = self.dispatcher.partition(topic, size=BATCH)
            node = self.client.its_leaders.get(partition, -1)
            found[node] += 1
            self._begun(node, topic, partition)
            if took_s is not None and node in took_s:
                self.dispatcher.acknowledged(self.waiting[node].pop(), took_s[node], BATCH)
        return found

    def _begun(self, node: int, topic: str, partition: int) -> None:
        self.waiting.setdefault(node, []).append(self.dispatcher.begun(node, topic, partition))


@pytest.mark.parametrize(
    ("key", "digest"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_digests_are_those_of_kafkas_own_test(key: bytes, digest: int) -> None:
    """``UtilsTest.testMurmur2``."""
    assert murmur2(key) == digest & 0xFFFFFFFF


@given(st.binary(max_size=300))
def test_keys_hash_as_in_java(key: bytes) -> None:
    assert murmur2(key) == kafka_pythons_murmur2(key)


def test_a_key_stays_where_kafka_puts_it_whatever_brokers_do() -> None:
    scene = Scene()
    scene.batches(10, {2: 0.1})
    scene.begun(1)
    scene.failed(1)
    assert all(
        scene.dispatcher.partition("t", key) == (kafka_pythons_murmur2(key) & 0x7FFFFFFF) % 9
        for key in (b"", b"a", b"billing", bytes(100))
    )


def test_only_the_keys_of_topics_that_are_named_are_spread() -> None:
    scene = Scene(spread={"t": SpreadKeys(choices=2)})
    assert len({scene.dispatcher.partition("t", b"key", 10) for _ in range(90)}) == 9
    assert not scene.dispatcher.spreads("other")
    scene.client.its_leaders = dict.fromkeys(range(20), 1)
    assert max(scene.dispatcher.partition("t", b"key", 10) for _ in range(200)) == 19, "the topic has grown"


def test_without_scores_all_partitions_take_turns() -> None:
    scene = Scene()
    assert Counter(scene.dispatcher.partition("t", size=BATCH) for _ in range(90)) == dict.fromkeys(range(9), 10)


def test_brokers_get_batches_by_their_scores() -> None:
    scene = Scene(metrics={"network": {1: 400, 2: 200, 3: 200}}, weights={"latency": 0, "in_flight": 0})
    scene.client.its_leaders = {partition: 1 + partition % 3 for partition in range(9)}
    assert scene.batches(100, dict.fromkeys([1, 2, 3], 0.1)) == {1: 20, 2: 40, 3: 40}


def test_a_batch_is_filled_before_the_next_partition_has_its_turn() -> None:
    scene = Scene()
    places = [scene.dispatcher.partition("t", size=BATCH // 5) for _ in range(36)]
    assert sorted(places[::4]) == list(range(9))
    assert all(len(set(places[first : first + 4])) == 1 for first in range(0, 36, 4))


@pytest.mark.parametrize("linger_s", [0.0, 60.0])
def test_a_slow_broker_gets_less_as_soon_as_batches_wait_for_it_and_after_the_lease(linger_s: float) -> None:
    scene = Scene(linger_s=linger_s, weights={"in_flight": 0})
    assert scene.batches(90, {1: 0.01, 2: 0.01})[3] < 10, "its batches wait, and those of the others do not"
    scene.all_acknowledged(3, 1.0)
    scene.clock.now_s = 4.0
    after = scene.batches(100, {1: 0.01, 2: 0.01, 3: 1.0})
    assert after[3] < 5
    assert abs(after[1] - after[2]) <= 2


def test_the_first_leases_are_short_and_the_steady_one_is_the_settings() -> None:
    cpu = {1: 1.0, 2: 1.0, 3: 1.0}
    scene = Scene(metrics={"cpu": cpu}, weights={"latency": 0, "in_flight": 0}, lease_s=4.0)
    seen: list[float] = []
    slowest, shares = 1, scene.batches(60, dict.fromkeys([1, 2, 3], 0.01))
    while len(seen) < 7:
        cpu |= {1: 1.0, 2: 1.0, slowest: 1000.0}
        shares = scene.batches(60, dict.fromkeys([1, 2, 3], 0.01))
        if shares[slowest] < 5:  # the table has the new loads
            seen.append(scene.clock.now_s)
            slowest = 3 - slowest
        scene.clock.now_s += 0.125
    assert [later - before for before, later in zip([0.0, *seen], seen, strict=False)] == [0.25, 0.5, 1, 2, 4, 4, 4]


def test_a_broker_that_becomes_slow_within_a_lease_gets_only_a_few_records_at_once() -> None:
    scene = Scene()
    took = dict.fromkeys([1, 2, 3], 0.005)
    for _ in range(6):
        scene.clock.now_s += 4
        assert scene.batches(90, took)[2] >= 20
    slowed = {**took, 2: 0.2}
    scene.batches(12, slowed)
    assert scene.batches(300, slowed)[2] <= 2


def test_a_broker_that_was_late_once_is_back_with_the_next_lease() -> None:
    scene = Scene()
    took = dict.fromkeys([1, 2, 3], 0.005)
    for now_s in (0, 4, 8, 12, 16):
        scene.clock.now_s = now_s
        scene.batches(300, took)
    for _ in range(5):
        scene.begun(2)
    scene.all_acknowledged(2, 0.2)
    assert scene.batches(90, took)[2] <= 2
    scene.clock.now_s += 4
    assert scene.batches(90, took)[2] >= 15


def test_the_first_batch_of_a_broker_may_take_the_time_to_connect() -> None:
    scene = Scene()
    for node, took_s in ((1, 0.01), (2, 0.15), (3, 0.01)):
        scene.begun(node)
        scene.all_acknowledged(node, took_s)
    assert scene.batches(90, dict.fromkeys([1, 2, 3], 0.01))[2] >= 10


def test_the_open_batch_of_a_topic_does_not_lower_the_share_of_its_broker() -> None:
    scene = Scene(linger_s=60.0, weights={"in_flight": 0})
    scene.batches(1, topic="rare")
    took = dict.fromkeys([1, 2, 3], 0.01)
    scene.batches(9, took)
    scene.clock.now_s = 4.0
    assert min(scene.batches(600, took).values()) == pytest.approx(200, abs=2)
    scene.clock.now_s = 70.0
    [holder] = [node for node, waiting in scene.waiting.items() if waiting]
    assert scene.batches(600, took)[holder] == 0, "the linger time has ended, and the broker does not take the batch"


@pytest.mark.parametrize(("led", "expected"), [((40, 1), (38, 3)), ((1, 1), (20, 21)), ((10, 10, 1), (18, 18, 5))])
def test_no_partition_of_a_broker_that_leads_few_gets_more_than_three_times_the_mean(
    led: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    scene = Scene(metrics={"cpu": dict.fromkeys(range(len(led)), 1.0)}, weights={"latency": 0, "in_flight": 0})
    leaders = [node for node, count in enumerate(led) for _ in range(count)]
    scene.client.its_leaders = dict(enumerate(leaders))
    found = scene.batches(41, dict.fromkeys(range(len(led)), 0.01))
    assert [found[node] for node in range(len(led))] == pytest.approx(expected, abs=1)


def test_a_broker_that_was_slow_gets_its_share_again_within_six_seconds() -> None:
    """Its mean time halves on a logarithmic scale with each lease, so leases are brief while it is slow."""
    scene = Scene()
    usual = {1: 0.002, 2: 0.002, 3: 0.002}
    scene.batches(300, usual)
    for took_s in (usual | {1: 0.5}, usual):
        for _ in range(60):
            scene.clock.now_s += 0.1
            scene.batches(50, took_s)
    scene.clock.now_s += 0.1
    assert scene.batches(300, usual)[1] >= 80


def test_a_broker_that_leads_few_partitions_relieves_slow_ones_without_a_limit() -> None:
    scene = Scene()
    scene.client.its_leaders = {partition: 1 if partition < 40 else 2 for partition in range(41)}
    took = {1: 0.5, 2: 0.005}
    scene.batches(41, took)
    scene.clock.now_s = 4.0
    assert scene.batches(100, took)[2] >= 98


def test_a_silent_broker_gets_nothing_until_it_answers() -> None:
    scene = Scene()
    took = {1: 0.01, 2: 0.01}
    assert scene.batches(30, took)[3]
    scene.clock.now_s = 3.0
    scene.batches(3, took)
    assert scene.batches(100, took)[3] == 0
    scene.clock.now_s = 60.0
    assert scene.batches(100, took)[3] == 0, "batches wait for it, which are probes enough"
    scene.all_acknowledged(3, 50.0)
    for _ in range(12):
        scene.clock.now_s += 4
        after = scene.batches(300, {**took, 3: 0.01})
    assert after[3] == pytest.approx(100, abs=10)


def test_a_broker_that_fails_gets_one_record_a_lease() -> None:
    scene = Scene()
    scene.batches(30, dict.fromkeys([1, 2, 3], 0.01))
    scene.begun(2)
    scene.failed(2)
    for _ in range(3):
        scene.clock.now_s += 4
        places = [scene.client.its_leaders[scene.dispatcher.partition("t", size=BATCH // 4)] for _ in range(400)]
        assert places.count(2) == 1
        scene.begun(2)
        scene.failed(2)
    scene.clock.now_s += 4
    scene.dispatcher.partition("t", size=BATCH)
    scene.begun(2)
    scene.all_acknowledged(2, 0.01)
    assert scene.batches(100, dict.fromkeys([1, 2, 3], 0.01))[2] > 10


def test_a_topic_that_refuses_its_records_takes_no_broker_from_the_others() -> None:
    scene = Scene()
    found: Counter[int] = Counter()
    for _ in range(90):
        scene.clock.now_s += 0.5
        scene.begun(1)
        scene.dispatcher.refused(scene.waiting[1].pop())
        found += scene.batches(1, dict.fromkeys([1, 2, 3], 0.01))
    assert min(found.values()) > 20, found


def test_a_turn_of_a_broker_that_stopped_answering_ends() -> None:
    scene = Scene()
    node = UNEVEN[scene.dispatcher.partition("t", size=1)]
    scene.begun(node)
    scene.clock.now_s = 2.0
    assert UNEVEN[scene.dispatcher.partition("t", size=1)] != node


def test_a_mapping_that_breaks_later_is_logged_and_its_last_loads_stay(caplog: pytest.LogCaptureFixture) -> None:
    cpu: dict[int, object] = {1: 1, 2: 1, 3: 100}
    scene = Scene(metrics={"cpu": cpu}, weights={"latency": 0, "in_flight": 0})
    cpu[2] = "much"
    scene.batches(1)
    scene.clock.now_s += 4
    scene.batches(1)
    assert ["metric 'cpu' failed" in record.getMessage() for record in own_log(caplog)] == [True]


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


def test_a_value_stays_until_the_next_even_if_no_lease_saw_it() -> None:
    answers = iter([None, "loads", None])
    reader = Background(lambda: next(answers), name="metric")
    values = []
    for _ in range(3):
        reader.read_once()
        values.append(reader.newest)
    assert values == [None, "loads", "loads"]


def test_a_function_is_read_in_the_background_and_its_last_loads_stay_while_it_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = [CancelledError("no route"), OSError("no route"), SystemExit("again"), KeyboardInterrupt()]
    answers = [*failures[:2], {1: 1, 2: 1, 3: 100}, None, *failures[2:], {"x": 1}]
    asked: list[str] = []
    dispatched = threading.Semaphore(0)  # a lease asks for a reading before it looks at the newest

    def cpu() -> object:
        dispatched.acquire()
        answer = answers[len(asked)]
        asked.append(threading.current_thread().name)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    scene = Scene(metrics={"cpu": cpu}, weights={"latency": 0, "in_flight": 0})
    reader = scene.dispatcher._readings._metrics["cpu"]
    shares = []
    for lease in range(len(answers)):
        shares.append(scene.batches(90, dict.fromkeys([1, 2, 3], 0.01))[3])
        dispatched.release()
        until(lambda lease=lease: reader.readings == lease + 1, lambda: asked)
        scene.clock.now_s += 4
    assert set(asked) == {"loadwise-metric 'cpu'"}
    assert shares[:3] == [10, 10, 10], "round robin over partitions"
    assert max(shares[3:]) < 3, "the old table stays"
    warning = "metric 'cpu' cannot be read; the last values are used until it can: "
    assert [record.getMessage().partition("(")[0] for record in own_log(caplog)] == [
        f"{warning}CancelledError",
        f"{warning}SystemExit",
    ]


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
    assert [record.getMessage() for record in own_log(caplog)] == [
        "metric 'lag' failed; its last loads are used until it works: BadGroupError('a load of -1')"
    ]


@pytest.mark.parametrize("error", [RuntimeError("down"), OverflowError("too large"), CancelledError("down")])
def test_a_load_source_that_raises_is_logged_and_stops_no_record(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def snapshot(self, _: object) -> None:
            raise error

    scene = Scene(metrics={"lag": Broken()}, weights={"latency": 0, "in_flight": 0})
    assert scene.batches(90, dict.fromkeys([1, 2, 3], 0.01)) == {1: 60, 2: 20, 3: 10}
    assert ["metric 'lag' failed" in record.getMessage() for record in own_log(caplog)] == [True]


def test_a_metric_of_unknown_brokers_only_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(metrics={"cpu": {98: 5, 99: 1}, "disk": {"1": 400, "2": 200, "3": 200}})
    for _ in range(3):
        scene.batches(10)
        scene.clock.now_s += 4
    assert [record.getMessage() for record in own_log(caplog)] == [
        "metric 'cpu' has loads for brokers [98, 99], but the leaders are [1, 2, 3]: give loads by node id"
    ]


def test_a_topic_that_lost_its_leaders_keeps_its_table() -> None:
    scene = Scene(metrics={"cpu": {1: 1, 2: 1, 3: 100}}, weights={"latency": 0, "in_flight": 0})
    before = scene.batches(100, dict.fromkeys([1, 2, 3], 0.01))
    scene.client.its_leaders = dict.fromkeys(range(9), -1)
    scene.clock.now_s += 4
    places = Counter(UNEVEN[scene.dispatcher.partition("t", size=BATCH)] for _ in range(100))
    assert places[3] == pytest.approx(before[3], abs=2)


def test_a_topic_whose_partitions_change_is_known_with_the_next_batch() -> None:
    scene = Scene()

    def places() -> set[int]:
        return {scene.dispatcher.partition("t", size=BATCH) for _ in range(9)}

    with scene.dispatcher.related():
        places()
        scene.client.its_leaders = {0: 1}
        assert places() == {0}, "of a block of related records"
    scene.client.its_leaders = UNEVEN
    assert places() == set(UNEVEN)
    scene.client.its_leaders = {0: 1, 1: 2}
    assert places() == {0, 1}


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
        ({"clock": 3}, "clock is 3; it must be a function"),
        ({"metrics": {"lag": LagLoad()}}, "'lag' has a LagLoad, which only consumers fill"),
        ({"metrics": {"rate": RateLoad()}}, "'rate' has a RateLoad, which only consumers fill"),
        ({"metrics": {"drain": DrainLoad(lag=LagLoad(), rate=RateLoad(), capacity=1)}}, "'drain' has a LagLoad"),
        ({"metrics": {"mix": MixedLoad(sources={"rate": RateLoad()})}}, "'mix' has a RateLoad"),
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
