"""A Spark stream and two Python consumers in one group: the load drifts, and one consumer leaves, as a picture.

Run it with ``python examples/spark_member.py`` after ``pip install '.[coordinator,spark,kafka-python]'``; Spark needs a
JDK 17. It brings its own Kafka, a loadwise coordinator on loopback: give another's address as the only argument. It
takes about a minute, and writes ``spark-member.html``: who read how many records in each second.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from loadwise import Coordinator, kafka_python_consumer
from loadwise.report.page import document
from loadwise.spark_source.session import local_session

PARTITIONS = 8
PER_S = 400
"""Records a second; while the load drifts, every second one goes into partition 0."""
STRATEGIES = ["weighted", "range"]
COLOURS = {"Spark": "#2563c9", "consumer 1": "#17875a", "consumer 2": "#e0a100"}


class Place(NamedTuple):
    """The broker, topic and group of all members."""

    bootstrap_servers: str
    topic: str
    group: str


class Readings:
    """Which offsets came, and how many records each member had read in each second."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.came: Counter[tuple[int, int]] = Counter()
        self.in_second: Counter[tuple[str, int]] = Counter()

    def now_s(self) -> int:
        return int(time.monotonic() - self.began)

    def add(self, name: str, offsets: list[tuple[int, int]]) -> None:
        self.came.update(offsets)
        self.in_second[name, self.now_s()] += len(offsets)


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else None
    with (
        local_session("spark_member.py", master="local[2]") as spark,
        kafka(given) as bootstrap_servers,
        TemporaryDirectory() as checkpoint,
    ):
        draw(spark, bootstrap_servers, checkpoint, Path("spark-member.html"), phase_s=15)


@contextmanager
def kafka(given: str | None) -> Iterator[str]:
    if given is not None:
        yield given
        return
    with Coordinator().in_thread() as coordinator:
        yield coordinator.bootstrap_servers


def draw(spark: SparkSession, bootstrap_servers: str, checkpoint: str, page: Path, *, phase_s: float) -> Readings:
    """Play the scene in three phases, and write the page; answer what was read."""
    place = Place(bootstrap_servers, f"clicks-{time.time_ns()}", f"payments-{time.time_ns()}")
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(place.topic, PARTITIONS, 1)])[place.topic].result(30)
    readings, drifts = Readings(), Event()
    with ExitStack() as running:
        query = stream(spark, place, checkpoint, readings)
        running.callback(query.stop)
        first = running.enter_context(consumer("consumer 1", place, readings))
        with ExitStack() as second:
            second.enter_context(consumer("consumer 2", place, readings))
            with traffic(place, drifts) as written:
                time.sleep(phase_s)
                drifts.set()
                drifted_at = readings.now_s()
                time.sleep(phase_s)
                second.close()
                left_at = readings.now_s()
                time.sleep(phase_s)
        ends_at = time.monotonic() + 120
        while len(readings.came) < written["records"] and time.monotonic() < ends_at and first.is_alive():
            time.sleep(0.2)
    repeats = sum(readings.came.values()) - len(readings.came)
    shares = Counter[str]()
    for (name, _), records in readings.in_second.items():
        shares[name] += records
    summary = f"{len(readings.came)} of {written['records']} records were read, {repeats} of them twice"
    print(f"{summary}: {dict(shares)}")
    events = {drifted_at: "half of the load goes to one partition", left_at: "consumer 2 leaves"}
    body = ["<h1>A Spark stream and two consumers in one group</h1>", f"<p>{summary}.</p>", picture(readings, events)]
    page.write_text(document("One group", body), encoding="utf-8")
    return readings


def stream(spark: SparkSession, place: Place, checkpoint: str, readings: Readings) -> Any:
    """The Spark side: a member that can do as much as both consumers."""

    def work(frame: DataFrame, _: int) -> None:
        readings.add("Spark", [(row.partition, row.offset) for row in frame.select("partition", "offset").collect()])

    frame = (
        spark.readStream.format("loadwise")
        .option("kafka.bootstrap.servers", place.bootstrap_servers)
        .option("kafka.group.id", place.group)
        .option("subscribe", place.topic)
        .option("startingOffsets", "earliest")
        .option("assignment.mode", "member")
        .option("assignment.strategy", ",".join(STRATEGIES))
        .option("assignment.capacity", "2")
        .load()
    )
    writer = frame.writeStream.foreachBatch(work).option("checkpointLocation", checkpoint)
    return writer.trigger(processingTime="500 milliseconds").start()


@contextmanager
def consumer(name: str, place: Place, readings: Readings) -> Iterator[Thread]:
    """An ordinary consumer on a thread of its own; it leaves the group in the end."""
    over = Event()

    def read() -> None:
        mine = kafka_python_consumer(
            place.topic,
            group_id=place.group,
            bootstrap_servers=place.bootstrap_servers,
            assignor=STRATEGIES,
            capacity=1.0,
            auto_offset_reset="earliest",
        )
        while not over.is_set():
            for records in mine.poll(timeout_ms=100).values():
                readings.add(name, [(record.partition, record.offset) for record in records])
        mine.close()

    thread = Thread(target=read)
    thread.start()
    try:
        yield thread
    finally:
        over.set()
        thread.join()


@contextmanager
def traffic(place: Place, drifts: Event) -> Iterator[Counter[str]]:
    """Writes until the end, evenly at first; gives how many records were written."""
    over, written = Event(), Counter[str]()

    def write() -> None:
        producer = Producer({"bootstrap.servers": place.bootstrap_servers})
        while not over.wait(0.1):
            for number in range(PER_S // 10):
                partition = 0 if drifts.is_set() and number % 2 else number % PARTITIONS
                producer.produce(place.topic, b"click", partition=partition)
                written["records"] += 1
            producer.poll(0)
        producer.flush(60)

    thread = Thread(target=write)
    thread.start()
    try:
        yield written
    finally:
        over.set()
        thread.join()


def picture(readings: Readings, events: dict[int, str]) -> str:
    """Bars of the records in each second, one colour a member, as SVG."""
    seconds = range(max(second for _, second in readings.in_second) + 1)
    highest = max(sum(readings.in_second[name, second] for name in COLOURS) for second in seconds)
    width, height = 1000 / len(seconds), 280
    parts = [f'<svg viewBox="0 0 1000 {height + 60}" role="img">']
    for second in seconds:
        top = float(height + 30)
        for name, colour in COLOURS.items():
            tall = readings.in_second[name, second] / highest * height
            top -= tall
            parts.append(
                f'<rect x="{second * width:.1f}" y="{top:.1f}" width="{width - 1:.1f}" height="{tall:.1f}"'
                f' fill="{colour}">'
                f"<title>{name}: {readings.in_second[name, second]} records in second {second}</title></rect>"
            )
    for number, (second, text) in enumerate(events.items()):
        at = second * width
        parts.append(f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{height + 30}"/>')
        parts.append(f'<text x="{at + 4:.1f}" y="{12 + 14 * number}">{text}</text>')
    for number, (name, colour) in enumerate(COLOURS.items()):
        parts.append(f'<rect x="{number * 140}" y="{height + 40}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{number * 140 + 18}" y="{height + 51}">{name}</text>')
    return "".join([*parts, "</svg>"])


if __name__ == "__main__":
    main()
