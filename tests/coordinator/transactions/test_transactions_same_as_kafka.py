"""Transactions: the same requests to Apache Kafka and to ours get the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from beside_kafka import Scenario, scenarios, sessions_agree
from topics import until
from transactors import NOW_MS, Transactor

from loadwise.coordinator import ThreadedCoordinator

pytestmark = pytest.mark.kafka

LAST_EPOCH = 2**15 - 2


def beginning(broker: Transactor) -> Iterator[Any]:
    yield [broker.init(timeout_ms=each)[0] for each in (0, -1, 900_001)]
    yield broker.init(transactional_id="")[0]
    yield [broker.shown(broker.init()) for _ in range(3)]
    yield [broker.shown(broker.init(version=version)) for version in range(6)]
    who = broker.begin()
    yield [broker.init((who[0], -1))[0], broker.init((-1, 3))[0]]
    yield broker.shown(broker.init((who[0] + 1_000_000, who[1])))
    yield [broker.init((who[0], epoch), version=version)[0] for epoch in (0, 99) for version in (3, 4)]
    yield broker.shown(broker.init(who))
    yield "the answer got lost", broker.shown(broker.init(who))
    yield broker.shown(broker.init(who))
    yield broker.described(), broker.described("none"), broker.described("")


def committing_and_aborting(broker: Transactor) -> Iterator[Any]:
    who = broker.begin()
    yield broker.shown((0, who))
    yield broker.write(who), broker.write(who, 1), broker.write(who, partition=1)
    yield broker.read(committed=True), broker.read(committed=False)
    yield broker.offsets(0, 0), broker.offsets(0, 1), broker.offsets(0, 1, NOW_MS), broker.offsets(0, 0, NOW_MS)
    yield broker.described(), broker.producers(), broker.producers(1), broker.producers(9)
    answer = broker.end(who, committed=True)
    yield broker.shown(answer), broker.described()
    yield broker.read(committed=True), broker.read(committed=False), broker.producers()
    who = answer[1]
    yield broker.write(who), broker.write(who, 1, records=3), broker.write(who, 4, partition=1)
    answer = broker.end(who, committed=False)
    yield broker.shown(answer), broker.described()
    yield [broker.read(offset, committed=True) for offset in range(9)]
    yield broker.read(committed=False), broker.offsets(0, 1), broker.producers()
    who = answer[1]
    yield broker.shown(broker.end(who, committed=True)), broker.shown(broker.end(who, committed=False))


def ending(broker: Transactor) -> Iterator[Any]:
    who = broker.begin()
    yield [broker.shown(broker.end(who, committed=each)) for each in (True, False)]
    who = broker.begin()
    yield broker.shown((0, who)), broker.write(who)
    answer = broker.end(who, committed=True)
    yield broker.shown(answer)
    yield "again", [broker.shown(broker.end(who, committed=each)) for each in (True, False)]
    who = answer[1]
    yield [broker.shown(broker.end((who[0], who[1] + more), committed=True)) for more in (1, 2, -2)]
    yield broker.shown(broker.end((who[0] + 1_000_000, who[1]), committed=True))
    yield broker.shown(broker.end(who, committed=True))
    answer = broker.end(who, committed=False)
    yield "of nothing", broker.shown(answer), broker.described(), broker.read(committed=False)
    yield broker.shown(broker.end(answer[1], committed=False))
    broker.transactional_id += "-none"
    yield broker.shown(broker.end(who, committed=True)), broker.add(who, 0), broker.write(who)


def older_clients(broker: Transactor) -> Iterator[Any]:
    who = broker.begin()
    yield [broker.write(who, version=version) for version in (9, 10, 11)]
    yield broker.add(who, 0), broker.described()
    yield broker.add(who, 0, 1, version=0), broker.add(who, 0, 7), broker.add(who, 0, topic="none")
    yield [broker.write(who, sequence, version=version) for sequence, version in enumerate((9, 10, 11))]
    yield broker.read(committed=True), broker.read(committed=False)
    yield [broker.shown(broker.end((who[0], who[1] + 1), committed=True, version=version)) for version in (0, 2, 4)]
    yield [broker.shown(broker.end(who, committed=True, version=4)) for _ in range(2)], broker.described()
    yield broker.shown(broker.end(who, committed=False, version=4)), broker.read(committed=True)
    yield broker.write(who, 3, version=11), broker.add(who, 0), broker.write(who, 3, version=11)
    yield broker.shown(broker.end(who, committed=False, version=3)), broker.read(committed=True), broker.producers()
    yield [broker.add((who[0], who[1] + 1), 0, version=version) for version in (0, 1, 2, 3)]
    yield broker.add((who[0] + 1_000_000, who[1]), 0)


def writing(broker: Transactor) -> Iterator[Any]:
    who = broker.begin()
    yield broker.write(who, transactional_id=None), broker.write(who, 3)
    yield broker.write(who), broker.write(who), broker.write(who, 7)
    yield broker.write(who, 1, transactional=False), broker.write(who, 1, transactional=False, transactional_id=None)
    yield broker.write((who[0], who[1] + 1)), broker.write((who[0] + 1_000_000, 0), partition=1)
    answer = broker.end(who, committed=True)
    yield broker.shown(answer), broker.write(who), broker.write(who, 1)
    yield broker.write(answer[1], transactional=False, transactional_id=None), broker.read(committed=True)


def fencing(broker: Transactor) -> Iterator[Any]:
    old = broker.begin()
    yield broker.write(old), broker.described()
    error, who = broker.init()
    yield broker.shown((error, who)), broker.described(), broker.read(committed=True)
    yield broker.write(old, 1), broker.shown(broker.end(old, committed=True)), broker.add(old, 0)
    yield broker.write(old, 1, version=11), broker.write(old, partition=1, version=11)
    yield broker.commit_offset(old, 5), broker.add_group(old), broker.add_group(old, version=1)
    yield broker.write(who), broker.shown(broker.end(who, committed=True)), broker.read(committed=True)
    old = broker.begin()
    yield broker.add(old, 0), broker.write(old, version=11)
    yield "recovers", broker.shown(broker.init(old)), broker.read(committed=False)


def offsets_of_groups(broker: Transactor) -> Iterator[Any]:
    yield broker.commit("", -1), broker.committed(stable=True)
    who = broker.begin()
    yield broker.commit_offset(who, 7), broker.described()
    yield broker.committed(stable=True), broker.committed(stable=False)
    answer = broker.end(who, committed=True)
    yield broker.shown(answer), broker.committed(stable=True)
    who = answer[1]
    yield broker.commit_offset(who, 9), broker.committed(stable=True)
    answer = broker.end(who, committed=False)
    yield broker.committed(stable=True), broker.committed(stable=False)
    who = answer[1]
    yield broker.commit_offset(who, 11), broker.commit("", -1), broker.committed(stable=True)
    answer = broker.end(who, committed=True)
    yield "the later one counts", broker.committed(stable=True)
    who = answer[1]
    yield [broker.commit_offset(who, 12, version=version) for version in (0, 3, 4)]
    yield broker.add_group(who), [broker.commit_offset(who, 12, version=version) for version in range(5)]
    yield broker.shown(broker.end(who, committed=True, version=4)), broker.committed(stable=True)
    yield broker.commit_offset(who, 1, transactional_id="none")


def offsets_of_members(broker: Transactor) -> Iterator[Any]:
    who = broker.begin()
    yield broker.join()[0], broker.join(0)[0], broker.commit_offset(who, 3), broker.sync(0)[0]
    yield broker.commit_offset(who, 4), broker.commit_offset(who, 4, member="nobody", generation=1)
    yield [broker.commit_offset(who, 5, member=0, generation=each) for each in (0, 1, 2, -1)]
    yield broker.committed(stable=True), broker.end(who, committed=True)[0], broker.committed(stable=True)


def listing(broker: Transactor) -> Iterator[Any]:
    yield broker.listed()
    who = broker.begin()
    yield broker.listed(), broker.listed(state_filters=["Empty"]), broker.listed(state_filters=["Ongoing", "Nonsense"])
    yield broker.write(who), broker.listed(state_filters=["Ongoing"]), broker.listed(state_filters=["Dead", "empty"])
    yield broker.listed(producer_id_filters=[who[0]]), broker.listed(producer_id_filters=[who[0] + 1_000_000])
    yield [broker.listed(duration_filter=each) for each in (0, 600_000)]
    patterns = (None, "", broker.transactional_id, "transactional-.*", "transactional", "x.*", "(")
    yield [broker.listed(version=2, transactional_id_pattern=each) for each in patterns]
    yield broker.end(who, committed=True)[0], broker.listed(), broker.listed(duration_filter=0)


def hanging(broker: Transactor) -> Iterator[Any]:
    """What Admin.abortTransaction does: markers from outside, for a transaction that its coordinator forgot."""
    broker.begin()
    who = broker.begin()
    yield broker.write(who), broker.mark((who[0], who[1] - 1)), broker.mark(who, partition=9)
    yield broker.mark(who), broker.read(committed=True), broker.producers(), broker.described()
    yield broker.mark((who[0] + 1_000_000, 0), committed=True), broker.read(committed=False)
    yield broker.shown(broker.end(who, committed=True)), broker.read(committed=True)
    who = broker.begin()
    yield broker.write(who), broker.mark(who, version=2, transactions=2), broker.read(committed=True)
    yield broker.mark((who[0], who[1] + 1), version=2, transactions=2), broker.read(committed=True)


def timing_out(broker: Transactor) -> Iterator[Any]:
    def late() -> tuple[int, int]:
        """A producer whose transaction was aborted as it took too long: Kafka looks for those every ten seconds."""
        who = broker.init(timeout_ms=500)[1]
        assert broker.write(who)[0] == 0
        until(lambda: broker.described()[1] == "CompleteAbort")
        return who

    who = late()
    yield broker.shown((0, who)), broker.described(), broker.read(committed=True)
    yield broker.write(who, 1), broker.write(who, 1, version=11), broker.add(who, 0), broker.commit_offset(who, 3)
    yield [
        broker.shown(broker.end(who, committed=each, version=version)) for each in (True, False) for version in (4, 5)
    ]
    yield "recovers", broker.shown(broker.init(who))
    who = late()
    yield "recovers", broker.shown(broker.init(who)), broker.shown(broker.init(who))


def running_out_of_epochs(broker: Transactor) -> Iterator[Any]:
    who = broker.begin()
    yield broker.shown((0, who))
    for _ in range(LAST_EPOCH // 2 - 2):
        who = broker.end(who, committed=False)[1]
    while who[1] < LAST_EPOCH:
        error, who = broker.end(who, committed=False)
        assert error == 0
    yield broker.shown((0, who)), broker.write(who)
    answer = broker.end(who, committed=True)
    yield broker.shown(answer), broker.shown(broker.end(who, committed=True)), broker.described()
    yield broker.read(committed=True), broker.write(answer[1]), broker.shown(broker.end(answer[1], committed=True))
    yield broker.shown(broker.init(who)), broker.shown(broker.init())


@scenarios(
    beginning,
    committing_and_aborting,
    ending,
    older_clients,
    writing,
    fencing,
    offsets_of_groups,
    offsets_of_members,
    listing,
    hanging,
    timing_out,
    running_out_of_epochs,
)
def test_ours_answers_as_kafka_does(apache_kafka: str, coordinator: ThreadedCoordinator, scenario: Scenario) -> None:
    sessions_agree(scenario, Transactor, apache_kafka, coordinator.bootstrap_servers)
