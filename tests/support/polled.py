"""kafka-python's consumers in tests: each polled on a thread of its own, from before it joins until it closes.

Its stock consumer loses a join that outlasts the ``poll`` that began it, where nothing but new metadata asked for that
join (see ``loadwise.assignor.clients.kafka_python.internals``). Two consumers polled in turn do that to each
other: one waits in its ``poll`` for the other, which is not polled meanwhile. So: a thread each, long polls without
pauses between them, and the partitions of its topics known before the first poll, so that no second join is made
because of them.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from topics import WAIT_S, until

Result = TypeVar("Result")

POLL_MS = 1000


class Polled:
    """A consumer of kafka-python that is being polled; nobody else may touch it, so others ask by `call`."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="polled-consumer")
        self._thread.start()

    def _run(self) -> None:
        try:
            with contextlib.closing(self._consumer):
                while not self._stopping.is_set():
                    self._consumer.poll(timeout_ms=POLL_MS)
                    with contextlib.suppress(queue.Empty):
                        self._calls.get_nowait()()
        except Exception as error:  # noqa: BLE001 (told to the test, by whatever it asks next)
            self._failure = error

    def assignment(self) -> set[Any]:
        """What the consumer owns: reading that is safe from any thread."""
        if self._failure is not None:
            raise self._failure
        return set(self._consumer.assignment())

    def call(self, ask: Callable[[Any], Result]) -> Result:
        """Let the polling thread call ``ask(consumer)`` between two polls, and answer what came of it."""
        if self._failure is not None:
            raise self._failure
        answer: Future[Result] = Future()

        def carry_out() -> None:
            try:
                answer.set_result(ask(self._consumer))
            except Exception as error:  # noqa: BLE001 (raised where it was asked)
                answer.set_exception(error)

        self._calls.put(carry_out)
        return answer.result(WAIT_S)

    def close(self) -> None:
        """Leave the group; raises what a ``poll`` raised."""
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure


@contextlib.contextmanager
def polled(make: Callable[..., Any], *topics: str, listener: Any = None, **config: Any) -> Iterator[Polled]:
    """A consumer made by ``make(**config)`` that subscribes to these topics, polled while the with block runs."""
    consumer = make(**config)
    try:
        consumer.subscribe(topics, listener=listener)
        know(consumer)
    except BaseException:
        consumer.close()
        raise
    with contextlib.closing(Polled(consumer)) as member:
        yield member


def know(consumer: Any) -> None:
    """Wait until a consumer that has subscribed, and was not polled yet, knows the partitions of its topics."""
    until(
        lambda: all(consumer.partitions_for_topic(topic) for topic in consumer.subscription()),
        lambda: f"the broker tells no partitions of {consumer.subscription()}",
    )


def settle(members: list[Polled], partitions: int) -> None:
    """Wait until every partition is owned once, and by everybody some."""
    deadline = time.monotonic() + WAIT_S
    while True:
        owned = [member.assignment() for member in members]
        if all(owned) and sum(map(len, owned)) == partitions == len(set().union(*owned)):
            return
        assert time.monotonic() < deadline, owned
        time.sleep(0.02)  # between two looks
