"""Records that are written all the time while something is tested."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from threading import Event, Thread

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
