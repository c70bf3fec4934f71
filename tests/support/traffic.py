"""Records that are written all the time while something is tested."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from confluent_kafka import Producer
from topics import WAIT_S


def exact_producer(brokers):
    """A producer that writes each record once, into a new topic too.

    It sends one request at a time. Kafka refuses the first one of a topic whose leader is not ready yet, and would take
    the second as the producer's first; librdkafka would then report the records of the refused one as written.
    """
    settings = {"bootstrap.servers": brokers, "linger.ms": 5, "log_level": 0}
    return Producer(settings | {"enable.idempotence": True, "max.in.flight": 1})


@contextmanager
def traffic(brokers, topic, spread, *, before=0):
    """Writes until the end, a record to each of ``spread`` in turn; gives how many records each partition has.

    ``before``: how many each of them has already.
    """
    over, written = Event(), Counter(dict.fromkeys(spread, before))

    def write():
        producer = exact_producer(brokers)
        while not over.wait(0.02):
            for partition in spread:
                producer.produce(topic, b"v" * 100, partition=partition)
                written[partition] += 1
            producer.poll(0)
        assert producer.flush(WAIT_S) == 0

    thread = Thread(target=write)
    thread.start()
    try:
        yield written
    finally:
        over.set()
        thread.join()


def write_hot(brokers, topic, partitions, *, hot, sent, over, hot_per_s=200.0, cold_per_s=20.0):
    """Write until ``over``: many records to the partitions that are ``hot`` at the time, few to the others.

    ``sent`` counts them.
    """
    producer, last, due = exact_producer(brokers), monotonic(), [0.0] * partitions
    while not over.wait(0.05):
        now = monotonic()
        for partition in range(partitions):
            due[partition] += (hot_per_s if partition in hot else cold_per_s) * (now - last)
            for _ in range(int(due[partition])):
                producer.produce(topic, b"x" * 20, partition=partition)
                sent[partition] += 1
            due[partition] -= int(due[partition])
        last = now
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
