"""The same requests of share groups (KIP-932) to Apache Kafka and to ours: errors, assignments, acquired records."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from typing import Any

import pytest
from beside_kafka import Scenario, scenarios, sessions_agree
from share_session import ShareSession
from topics import WAIT_S

from loadwise.coordinator import ThreadedCoordinator

pytestmark = pytest.mark.kafka

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


def what_is_advertised(broker: ShareSession) -> Iterator[Any]:
    yield broker.advertised({76, 77, 78, 79, 90, 91, 92}, "share.version")


def what_a_heartbeat_needs(broker: ShareSession) -> Iterator[Any]:
    broker.make()
    yield broker.beat_as("a", 0)
    yield broker.beat_as("a", 0, broker.topic, member_id="")
    yield broker.beat_as("a", 0, broker.topic, group_id="")
    yield broker.beat_as("a", 0, broker.topic, rack_id=" ")
    yield broker.beat_as("a", -2, broker.topic)
    yield broker.beat_as("a", 1, broker.topic)
    yield broker.beat_as("a", -1, broker.topic)
    yield broker.listed()
    broker.join_as("a")
    yield broker.listed(), broker.listed("share"), broker.listed("consumer")
    yield broker.beat_as("b", 3)[0], broker.beat_as("b", -1)[0], broker.beat_as("a", 99)[0]
    yield broker.describe_as_share_group()
    yield broker.delete()
    yield broker.beat_as("a", -1)
    yield broker.describe_as_share_group()
    yield broker.delete()
    yield broker.describe_as_share_group(), broker.listed()


def groups_of_other_kinds(broker: ShareSession) -> Iterator[Any]:
    broker.make()
    broker.join_as("a")
    yield broker.join()
    yield broker.sync("x"), broker.beat("x"), broker.leave(("x", None))
    yield broker.commit("", -1), broker.commit("", -1, version=8)
    yield broker.describe()
    broker.group += "-classic"
    broker.join()
    yield broker.beat_as("a", 0, broker.topic)[0], broker.beat_as("a", 1)[0]
    yield broker.describe_as_share_group()[0], broker.offsets()[0], broker.set_offsets({0: 0})[0]


def many_members(broker: ShareSession) -> Iterator[Any]:
    broker.make(4)
    broker.join_as("a", 4)
    epoch, shared = broker.join_as("b", 2)
    yield len(shared[0])
    yield broker.beat_as("b", epoch)[0]
    *told, members = broker.describe_as_share_group()
    yield told, sorted((behind, len(each[0])) for _, _, _, behind, each in members)
    yield len(broker.beat_as("b", epoch, broker.topic)[2][0]), broker.beat_as("b", epoch)[2]
    yield len(broker.beat_as("b", epoch, broker.topic, "none")[2][0])
    broker.beat_as("b", -1)
    yield broker.describe_as_share_group()[3]


def acknowledging(broker: ShareSession) -> Iterator[Any]:
    broker.make()
    broker.fill(5, 5)
    broker.join_as("a")
    yield broker.acquire_as("a", 0)
    yield broker.offsets()
    yield broker.tell_as("a", 1, {0: [(0, 4, [ACCEPT])]})
    yield broker.offsets()
    yield broker.tell_as("a", 2, {0: [(5, 9, [ACCEPT, RELEASE, REJECT, GAP, ACCEPT])]})
    yield broker.offsets()
    yield broker.acquire_as("a", 3)
    yield broker.acquire_as("a", 4, {0: [(6, 6, [ACCEPT])]})
    yield broker.offsets()
    broker.fill(3)
    yield broker.acquire_as("a", 5)
    yield broker.acquire_as("a", 6, {0: [(10, 12, [RELEASE])]})
    yield broker.tell_as("a", 7, {0: [(10, 12, [REJECT])]})
    yield broker.offsets()


def acknowledgements_that_cannot_be(broker: ShareSession) -> Iterator[Any]:
    broker.make()
    broker.fill(5, 5)
    broker.join_as("a")
    yield broker.tell_as("a", 1, {0: [(0, 1, [ACCEPT])]})
    yield broker.acquire_as("a", 0, {0: [(0, 1, [ACCEPT])]})
    yield broker.acquire_as("a", 0)
    epoch = 0
    for told in (
        [(5, 4, [ACCEPT])],
        [(0, 4, [])],
        [(0, 4, [ACCEPT, ACCEPT])],
        [(0, 4, [7])],
        [(0, 4, [RENEW])],
        [(0, 2, [ACCEPT]), (1, 4, [ACCEPT])],
        [(0, 20, [ACCEPT])],
        [(20, 25, [ACCEPT])],
        [(0, 2, [ACCEPT]), (2, 4, [ACCEPT])],
        [(0, 9, [ACCEPT])],
        [(0, 9, [ACCEPT])],
    ):
        epoch += 1
        yield told, broker.tell_as("a", epoch, {0: told})
    yield broker.tell_as("a", epoch + 1, {3: [(0, 1, [ACCEPT])]})
    yield broker.tell_as("a", epoch + 1, {0: [(0, 1, [ACCEPT])]})
    yield broker.tell_as("b", 1, {0: [(0, 1, [ACCEPT])]})
    yield broker.offsets()


def sessions(broker: ShareSession) -> Iterator[Any]:
    broker.make(2)
    broker.fill(2)
    broker.join_as("a", 2)
    yield broker.acquire_as("a", 5), broker.acquire_as("a", -1, partitions=[])
    yield broker.acquire_as("a", 0, member_id=""), broker.acquire_as("a", 0, member_id="m" * 37)
    yield broker.acquire_as("a", 0, group_id=None)
    yield broker.acquire_as("a", 0, partitions=[0, 1])
    yield broker.acquire_as("a", 1, partitions=[])
    yield broker.acquire_as("a", 1), broker.acquire_as("a", 3)
    yield broker.tell_as("a", 0, {0: [(0, 1, [ACCEPT])]})
    yield broker.acquire_as("a", 2, partitions=[7])
    yield broker.acquire_as("a", -1)
    yield broker.acquire_as("a", -1, {0: [(0, 0, [ACCEPT])]}, partitions=[])
    yield broker.acquire_as("a", 3, partitions=[])
    yield broker.acquire_as("b", 0)
    yield broker.tell_as("b", -1, {0: [(0, 1, [RELEASE])]})
    yield broker.acquire_as("b", 0)
    yield broker.acquire_as("b", 0)


def a_connection_that_ends(broker: ShareSession) -> Iterator[Any]:
    broker.make(**{"record.lock.duration.ms": "60000"})
    broker.fill(4)
    broker.join_as("a")
    other = ShareSession(broker.address)
    other.group, other.topic_id = broker.group, broker.topic_id
    yield other.acquire_as("b", 0)
    yield broker.acquire_as("a", 0, max_wait_ms=500)
    other.close()
    deadline, epoch, answer = time.monotonic() + WAIT_S, 1, (0, [])
    while not answer[1] and time.monotonic() < deadline:
        answer = broker.acquire_as("a", epoch, max_wait_ms=500)
        epoch += 1
    yield answer


def limits_of_a_fetch(broker: ShareSession) -> Iterator[Any]:
    broker.make()
    broker.fill(10, 10, 10, 10)
    broker.join_as("a")
    yield broker.acquire_as("a", 0, max_records=5, batch_size=5)
    yield broker.acquire_as("a", 1, max_records=15, batch_size=3)
    yield broker.acquire_as("b", 0, max_records=4, share_acquire_mode=1)
    yield broker.acquire_as("c", 0, max_records=4, share_acquire_mode=1)
    yield broker.acquire_as("c", 1, max_records=1)
    yield broker.acquire_as("d", 0, max_records=0), broker.acquire_as("d", 1, max_bytes=1)


def at_most_so_many_under_way(broker: ShareSession) -> Iterator[Any]:
    broker.make(**{"partition.max.record.locks": "100"})
    broker.fill(*[30] * 5)
    broker.join_as("a")
    yield broker.acquire_as("a", 0, max_records=60)
    yield broker.acquire_as("b", 0)
    yield broker.acquire_as("b", 1)
    yield broker.tell_as("a", 1, {0: [(10, 19, [RELEASE])]})
    yield broker.acquire_as("b", 2)
    yield broker.tell_as("a", 2, {0: [(0, 9, [ACCEPT])]})
    yield broker.acquire_as("b", 3)
    yield broker.offsets()


def deliveries_are_counted(broker: ShareSession) -> Iterator[Any]:
    broker.make()
    broker.fill(8)
    broker.join_as("a")
    epoch = 0
    for _ in range(12):
        answer = broker.acquire_as("a", epoch)
        yield answer
        got = answer[1][0][3] if answer[1] else []
        if not got:
            break
        epoch += 2
        yield broker.tell_as("a", epoch - 1, {0: [(first, last, [RELEASE]) for first, last, _ in got]})
    yield broker.offsets()


def locks_that_are_renewed(broker: ShareSession) -> Iterator[Any]:
    broker.make()
    broker.fill(3)
    broker.join_as("a")
    yield broker.acquire_as("a", 0)
    yield broker.tell_as("a", 1, {0: [(0, 2, [RENEW])]}, is_renew_ack=True)
    yield broker.tell_as("a", 2, {0: [(0, 2, [RENEW, ACCEPT, ACCEPT])]}, is_renew_ack=True)
    nothing = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait_ms": 0}
    yield broker.acquire_as("a", 3, {0: [(0, 0, [RENEW])]}, is_renew_ack=True)
    yield broker.acquire_as("a", 3, {0: [(0, 0, [RENEW])]}, is_renew_ack=True, **nothing)
    yield broker.tell_as("a", 4, {0: [(0, 0, [ACCEPT])]})
    yield broker.offsets()


def administration(broker: ShareSession) -> Iterator[Any]:
    broker.make(2)
    broker.fill(6)
    yield broker.offsets(), broker.offsets(None, 0), broker.offsets("")
    yield broker.forget_offsets(broker.topic), broker.forget_offsets(broker.topic, group="")
    yield broker.set_offsets({0: 0}), broker.listed()
    broker.join_as("a", 2)
    yield broker.offsets(), broker.offsets(None, 0, 1)
    yield broker.set_offsets({0: 0}), broker.forget_offsets(broker.topic)
    broker.beat_as("a", -1)
    yield broker.set_offsets({0: 1, 1: 0})
    yield broker.set_offsets({0: 1, 5: 0})
    yield broker.set_offsets({0: 1}, "missing")
    yield broker.offsets()
    broker.join_as("a", 2)
    yield broker.acquire_as("a", 0)
    yield broker.tell_as("a", 1, {0: [(1, 2, [ACCEPT]), (4, 4, [ACCEPT])]})
    yield broker.offsets(), broker.offsets(None, 0)
    broker.acquire_as("a", -1, partitions=[])
    broker.beat_as("a", -1)
    yield broker.forget_offsets(broker.topic, "missing")
    yield broker.offsets()
    yield broker.forget_offsets(broker.topic)


def elements_twice(broker: ShareSession) -> Iterator[Any]:
    """One element of each array doubled, or told otherwise the second time, when it counts."""
    broker.make(2)
    broker.fill(*[2] * 8)
    broker.join_as("a", 2)
    epoch = 0
    yield broker.acquire_as("a", epoch, partitions=[0, 0, 1])
    told = [{"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}]
    released = [{"first_offset": 1, "last_offset": 1, "acknowledge_types": [2]}]
    for offset, (first, second) in enumerate([(told, told), (told, released), (told, []), ([], told)]):
        rows = [
            {
                "partition_index": 0,
                "acknowledgement_batches": [
                    {
                        **each,
                        "first_offset": each["first_offset"] + 2 * offset,
                        "last_offset": each["last_offset"] + 2 * offset,
                    }
                    for each in batches
                ],
            }
            for batches in (first, second)
        ]
        for topics in (
            [{"topic_id": broker.topic_id, "partitions": rows}],
            [{"topic_id": broker.topic_id, "partitions": [row]} for row in rows],
        ):
            epoch += 1
            yield broker.tell_as("a", epoch, {}, topics=copy.deepcopy(topics))
            yield broker.offsets()
    twice = [{"first_offset": 9, "last_offset": 9, "acknowledge_types": [1]}] * 2
    row = {"partition_index": 0, "acknowledgement_batches": copy.deepcopy(twice)}
    yield broker.tell_as("a", epoch + 1, {}, topics=[{"topic_id": broker.topic_id, "partitions": [row]}])


@scenarios(
    elements_twice,
    what_is_advertised,
    what_a_heartbeat_needs,
    groups_of_other_kinds,
    many_members,
    acknowledging,
    acknowledgements_that_cannot_be,
    sessions,
    a_connection_that_ends,
    limits_of_a_fetch,
    at_most_so_many_under_way,
    deliveries_are_counted,
    locks_that_are_renewed,
    administration,
)
def test_ours_answers_as_kafka_does(apache_kafka: str, coordinator: ThreadedCoordinator, scenario: Scenario) -> None:
    sessions_agree(scenario, ShareSession, apache_kafka, coordinator.bootstrap_servers)
