"""``kill -9`` and a start with the same directory: Apache Kafka and ours answer the same before and after it."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka_process import kafka_from_jars
from missing import skipped_where_missing
from offset_walk import SOON, offset_walk
from programs_with_data import Program
from seeds import SEED
from topics import WAIT_S
from transactors import Transactor

pytestmark = pytest.mark.kafka


def batches(broker: Transactor, *, committed: bool) -> Any:
    """What is read, but for the epoch of Kafka's coordinator, which grows with its restart."""
    error, high, stable, aborted, rows = broker.again(lambda: broker.read(committed=committed), also=SOON)
    return error, high, stable, aborted, [row[:6] for row in rows]


def begun(broker: Transactor) -> tuple[int, int]:
    """A producer whose transaction outlasts a restart."""
    error, who = broker.init(timeout_ms=600_000)
    assert error == 0
    return who


def beat(broker: Transactor, member: int, generation: int = 1) -> int:
    return int(broker.again(lambda: (broker.beat(member, generation),))[0])


def an_open_transaction(broker: Transactor) -> Iterator[Any]:
    who = begun(broker)
    yield broker.write(who), broker.write(who, 1), broker.commit_offset(who, 7)
    yield "killed"
    yield broker.described(), batches(broker, committed=True), batches(broker, committed=False)
    yield broker.again(lambda: broker.committed(stable=True), also=SOON)
    yield broker.write(who, 2), broker.shown(broker.end(who, committed=True))
    yield batches(broker, committed=True), broker.committed(stable=True)


def an_open_transaction_of_a_producer_that_is_gone(broker: Transactor) -> Iterator[Any]:
    who = begun(broker)
    yield broker.write(who), broker.shown((0, who))
    yield "killed"
    yield broker.shown(broker.init(timeout_ms=600_000)), broker.described()
    yield batches(broker, committed=True), broker.write(who, 1)


def a_fenced_producer(broker: Transactor) -> Iterator[Any]:
    first = begun(broker)
    yield broker.write(first)
    second = begun(broker)
    yield broker.shown((0, second)), broker.write(second)
    yield "killed"
    yield broker.write(first, 1), broker.shown(broker.end(first, committed=True)), broker.write(second, 1)
    yield broker.shown(broker.init(first, timeout_ms=600_000)), broker.shown(broker.end(second, committed=False))
    yield batches(broker, committed=True), batches(broker, committed=False)


def an_end_whose_answer_got_lost(broker: Transactor) -> Iterator[Any]:
    who = begun(broker)
    yield broker.write(who), broker.shown(broker.end(who, committed=True))
    yield "killed"
    answer = broker.end(who, committed=True)
    yield broker.shown(answer), broker.shown(broker.end(who, committed=False))
    yield broker.write(answer[1]), broker.shown(broker.end(answer[1], committed=False))
    yield batches(broker, committed=True)


def a_retried_batch(broker: Transactor) -> Iterator[Any]:
    _, who = broker.init(transactional_id="never used")
    plain = {"transactional": False, "transactional_id": None, "version": 9}
    yield broker.write(who, **plain), broker.write(who, 1, records=3, **plain)
    yield "killed"
    yield broker.again(lambda: broker.write(who, 1, records=3, **plain), also=SOON)
    yield broker.write(who, 9, **plain), broker.write(who, 4, **plain), broker.write((who[0], who[1] + 1), 3, **plain)


def a_classic_group(broker: Transactor) -> Iterator[Any]:
    yield broker.again(lambda: broker.join(version=3)), broker.sync(0), broker.commit(0, 1)
    before = broker.describe()
    yield before
    yield "killed"
    yield beat(broker, 0), broker.describe() == before, broker.beat(0, 0), broker.beat(0, 2)
    yield broker.commit(0, 1), broker.committed(stable=True), broker.join(0, version=3), broker.sync(0, 2)


def a_static_member(broker: Transactor) -> Iterator[Any]:
    yield broker.again(lambda: broker.join(instance="i")), broker.sync(0, instance="i")
    yield "killed"
    yield broker.again(lambda: broker.join(instance="i"))
    yield broker.beat(0, 1, "i"), broker.sync(1, instance="i"), broker.beat(1, 1, "i")


def an_empty_group(broker: Transactor) -> Iterator[Any]:
    yield broker.again(lambda: (broker.commit("", -1),)), broker.describe()
    yield "killed"
    yield broker.again(lambda: broker.committed(stable=False), also=SOON), broker.describe()
    yield broker.delete(), broker.describe()


EXCHANGES = (
    an_open_transaction,
    an_open_transaction_of_a_producer_that_is_gone,
    a_fenced_producer,
    an_end_whose_answer_got_lost,
    a_retried_batch,
    a_classic_group,
    a_static_member,
    an_empty_group,
    *(offset_walk(seed) for seed in range(SEED, SEED + 20)),
)


def exchanged(address: str, kill_and_start: Callable[[], None]) -> dict[str, list[Any]]:
    """What a broker answers to each exchange; they are all killed at once."""
    found: dict[str, list[Any]] = {}
    with contextlib.ExitStack() as stack:
        running = []
        for exchange in EXCHANGES:
            broker = Transactor(address)
            stack.callback(broker.close)
            answers = exchange(broker)
            found[exchange.__name__] = []
            for answer in answers:
                if answer == "killed":
                    break
                found[exchange.__name__].append(answer)
            running.append((broker, exchange.__name__, answers))
        kill_and_start()
        for broker, name, answers in running:
            broker.socket.close()
            broker.socket = connected(address)
            found[name] += answers
    return found


def connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return socket.create_connection((host, int(port)), timeout=WAIT_S)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Those of Apache Kafka, and ours."""
    with skipped_where_missing(), kafka_from_jars() as kafka:

        def restart() -> None:
            kafka.broker.kill()
            kafka.broker.start()

        of_kafka = exchanged(kafka["PLAINTEXT"], restart)
    return of_kafka, our_answers(tmp_path_factory.mktemp("data"))


def our_answers(path: Path) -> dict[str, list[Any]]:
    programs = [Program(path)]
    address = programs[0].address

    def restart() -> None:
        programs[-1].kill()
        programs.append(Program(path, "--listen", address))

    try:
        return exchanged(address, restart)
    finally:
        programs[-1].kill()


@pytest.mark.parametrize("exchange", [each.__name__ for each in EXCHANGES])
def test_it_comes_back_as_kafka_does(answers: tuple[dict[str, list[Any]], dict[str, list[Any]]], exchange: str) -> None:
    of_kafka, ours = answers
    assert ours[exchange] == of_kafka[exchange]
