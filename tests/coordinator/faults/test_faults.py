"""Faults on demand: the rules by themselves, and a broker without a network that meets them."""

from __future__ import annotations

from itertools import count
from typing import Any

import commits
import pytest
from client_messages import client_request, request_bytes
from hypothesis import given
from hypothesis import strategies as st

from loadwise.coordinator import BadFaultError, Faults
from loadwise.coordinator.calls.call import Answer, Call, HangUp
from loadwise.coordinator.faults.injector import FaultInjector
from loadwise.coordinator.faults.rules import Fault, Subject
from loadwise.coordinator.faults.subjects import subject_of
from loadwise.coordinator.groups.events import Committer
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.routing.router import Router
from loadwise.coordinator.routing.services import services
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import decode_request, served

APIS = served(service.api for service in services().values())
NAMES = {api.name for api in APIS.values()}
HEARTBEAT = Subject(api="Heartbeat", client_id="c", groups=frozenset({"g"}), members=frozenset({"m", "i"}))


def faults() -> Faults:
    return Faults(NAMES)


# ---- the rules ----


def test_a_fault_hits_as_often_as_it_is_told_and_then_is_gone() -> None:
    rules = faults()
    fault = rules.answer("Heartbeat", "REBALANCE_IN_PROGRESS", times=2)
    assert [rules.take(HEARTBEAT) for _ in range(3)] == [fault, fault, None]
    assert (fault.hits, fault.is_used_up, rules.pending) == (2, True, ())


def test_faults_are_tried_in_the_order_in_which_they_were_made() -> None:
    rules = faults()
    first = rules.drop("Heartbeat")
    second = rules.delay("*", 5, times=None)
    assert [rules.take(HEARTBEAT) for _ in range(3)] == [first, second, second]


def test_a_fault_may_let_some_pass_first() -> None:
    rules = faults()
    third = rules.drop("Heartbeat", skip=2)
    assert [rules.take(HEARTBEAT) for _ in range(4)] == [None, None, third, None]


@pytest.mark.parametrize(
    ("conditions", "fits"),
    [
        ({"group": "g"}, True),
        ({"group": "h"}, False),
        ({"member": "m"}, True),
        ({"member": "i"}, True),
        ({"member": "c"}, False),
        ({"client_id": "c"}, True),
        ({"client_id": "d"}, False),
        ({"topic": "t"}, False),
        ({"broker": 1}, True),
        ({"broker": 2}, False),
        ({"group": "g", "member": "x"}, False),
    ],
)
def test_a_fault_is_for_those_whom_it_names(conditions: Any, fits: bool) -> None:
    rules = faults()
    rules.drop("Heartbeat", **conditions)
    assert (rules.take(HEARTBEAT) is not None) is fits
    assert rules.take(Subject(api="SyncGroup", client_id="c", groups=frozenset({"g"}))) is None


def test_faults_can_be_taken_back() -> None:
    rules = faults()
    one, two = rules.drop("Heartbeat"), rules.drop("Heartbeat")
    rules.remove(one)
    rules.remove(one)
    assert rules.pending == (two,)
    rules.clear()
    assert rules.take(HEARTBEAT) is None


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda rules: rules.drop("Heartbeats"), "no API 'Heartbeats' is served .*; choose from AddOffsetsToTxn, "),
        (lambda rules: rules.drop("Heartbets"), r"no API 'Heartbets' is served \(did you mean 'Heartbeat'\?\)"),
        (lambda rules: rules.answer("Heartbeat", "NOT_LEADER"), r"error \(did you mean 'NOT_LEADER_OR_FOLLOWER'\?\)"),
        (lambda rules: rules.answer("Heartbeat", "NO_SUCH"), "'NO_SUCH' is not the name or number of a Kafka error"),
        (lambda rules: rules.answer("Heartbeat", 9999), "9999 is not the name or number of a Kafka error"),
        (lambda rules: rules.drop("Heartbeat", times=0), "times=0"),
        (lambda rules: rules.drop("Heartbeat", skip=-1), "skip=-1"),
        (lambda rules: rules.drop("Heartbeat", times=2**31), "times must be 1 up to 2,147,483,647"),
        (lambda rules: rules.drop("Heartbeat", skip=2**31), "skip 0 up to 2,147,483,647"),
        (lambda rules: rules.delay("Heartbeat", -1), "-1 ms"),
        (lambda rules: rules.delay("Heartbeat", 2**31), "it must be 0 to 2,147,483,647"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, complaint: str) -> None:
    with pytest.raises(BadFaultError, match=complaint):
        make(faults())


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda rules: rules.delay("Fetch", ms="5"), "ms is '5'; it must be a whole number"),
        (lambda rules: rules.delay("Fetch", ms=True), "ms is True; it must be a whole number"),
        (lambda rules: rules.drop("Fetch", times="2"), "times is '2'; it must be a whole number"),
        (lambda rules: rules.drop("Fetch", skip=None), "skip is None; it must be a whole number"),
        (lambda rules: rules.drop("Fetch", broker="2"), "broker is '2'; it must be a whole number"),
        (lambda rules: rules.drop("Fetch", group=5), "group is 5; it must be text"),
        (lambda rules: rules.drop("Fetch", topic=["t"]), r"topic is \['t'\]; it must be text"),
        (lambda rules: rules.drop("Fetch", after_handling="no"), "after_handling is 'no'; it must be True or False"),
        (lambda rules: rules.drop(1), "api is 1; it must be text"),
        (lambda rules: rules.drop("Fetch", gruop="g"), r"no condition 'gruop' \(did you mean 'group'\?\)"),
    ],
)
def test_arguments_of_another_type_or_name_are_refused(make: Any, complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        make(faults())


def test_an_error_goes_by_name_number_or_constant() -> None:
    rules = faults()
    made = [rules.answer("Heartbeat", error) for error in ("NOT_COORDINATOR", 16, ErrorCode.NOT_COORDINATOR)]
    assert len({fault.action for fault in made}) == 1


@given(
    st.lists(st.tuples(st.sampled_from("gh"), st.integers(0, 3), st.one_of(st.none(), st.integers(1, 3))), max_size=6),
    st.lists(st.sampled_from("ghx"), max_size=20),
)
def test_the_same_requests_always_meet_the_same_faults(rules: Any, requests: list[str]) -> None:
    """Against the definition: the first that fits, has let its share pass, and has some left."""
    real = faults()
    model = []
    for group, skip, times in rules:
        model.append([real.drop("*", group=group, skip=skip, times=times), group, skip, times])
    for group in requests:
        expected: Fault | None = None
        for rule in model:
            if rule[1] != group or rule[3] == 0:
                continue
            if rule[2]:
                rule[2] -= 1
                continue
            rule[3] = None if rule[3] is None else rule[3] - 1
            expected = rule[0]
            break
        assert real.take(Subject(api="Heartbeat", groups=frozenset({group}))) is expected
    assert list(real.pending) == [rule[0] for rule in model if rule[3] != 0]


# ---- a broker that meets them ----


class Wire:
    """A broker with topic ``t`` behind a fault injector, and a clock."""

    def __init__(self) -> None:
        self.router = Router()
        self.cluster = self.router.cluster
        self.topic_id = self.cluster.topics.create("t", 1).id
        self.faults = faults()
        self.gate = FaultInjector(self.router, self.faults)
        self.now_ms = 1000
        self._tokens = count(1)

    def call(self, request: Any, client_id: str = "client") -> Call:
        return Call(next(self._tokens), decode_request(request_bytes(request, 7, client_id), APIS), "/127.0.0.1")

    def has_more_to_come(self) -> bool:
        """Whether anything is due before lapsed offsets are looked for."""
        deadline = self.gate.next_deadline_ms
        return deadline is not None and deadline < 600_000

    def send(self, request: Any) -> list[Answer]:
        return self.gate.receive(self.call(request), self.now_ms)

    def expire(self) -> list[Answer]:
        deadline = self.gate.next_deadline_ms
        assert deadline is not None
        self.now_ms = deadline
        return self.gate.expire(deadline)

    def subject(self, request: Any) -> Subject:
        return subject_of(self.call(request), lambda topic_id: "t" if topic_id == self.topic_id else None)


def commit(offset: int = 5, version: int = 8) -> Any:
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": None}
    return client_request(
        "OffsetCommit", version, group_id="g", member_id="", topics=[{"name": "t", "partitions": [partition]}]
    )


def beat() -> Any:
    return client_request("Heartbeat", 4, group_id="g", generation_id=1, member_id="m", group_instance_id="i")


def committed(wire: Wire) -> int | None:
    found = wire.cluster.groups.offsets.of("g").get(Partition("t", 0))
    return None if found is None else found.offset


def error_of(answers: list[Answer]) -> int:
    (answer,) = answers
    return int(answer.response.topics[0].partitions[0].error_code)


def test_an_error_before_handling_leaves_no_trace_and_after_handling_it_does() -> None:
    wire = Wire()
    wire.faults.answer("OffsetCommit", "NOT_COORDINATOR", group="g")
    assert error_of(wire.send(commit())) == 16
    assert committed(wire) is None
    wire.faults.answer("OffsetCommit", "NOT_COORDINATOR", group="g", after_handling=True)
    assert error_of(wire.send(commit())) == 16
    assert committed(wire) == 5
    assert error_of(wire.send(commit())) == 0


def test_none_as_the_error_is_an_answer_that_lies() -> None:
    wire = Wire()
    wire.faults.answer("OffsetCommit", "NONE")
    assert error_of(wire.send(commit())) == 0
    assert committed(wire) is None


def test_a_delayed_request_is_handled_later_and_a_delayed_answer_comes_later() -> None:
    wire = Wire()
    wire.faults.delay("OffsetCommit", 300)
    assert wire.send(commit(5)) == []
    assert (committed(wire), wire.gate.next_deadline_ms) == (None, 1300)
    assert wire.gate.expire(1299) == []
    assert error_of(wire.expire()) == 0
    assert committed(wire) == 5
    wire.faults.delay("OffsetCommit", 300, after_handling=True)
    assert wire.send(commit(6)) == []
    assert committed(wire) == 6
    assert error_of(wire.expire()) == 0
    assert not wire.has_more_to_come()


def test_a_dropped_request_is_never_answered() -> None:
    wire = Wire()
    wire.faults.drop("OffsetCommit")
    wire.faults.drop("OffsetCommit", after_handling=True)
    assert wire.send(commit()) == []
    assert committed(wire) is None
    assert wire.send(commit()) == []
    assert committed(wire) == 5
    assert not wire.has_more_to_come()


def test_a_connection_that_is_to_be_closed_is_told_to_the_server() -> None:
    wire = Wire()
    wire.faults.disconnect("Heartbeat", member="i")
    (answer,) = wire.send(beat())
    assert isinstance(answer.response, HangUp)


def test_an_answer_that_comes_later_meets_its_fault_when_it_comes() -> None:
    wire = Wire()
    wire.faults.answer("Fetch", "NOT_LEADER_OR_FOLLOWER", topic="t", after_handling=True)
    topics = [{"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 10}]}]
    request = client_request("Fetch", 11, max_wait_ms=50, min_bytes=1, topics=topics)
    assert wire.send(request) == []
    (answer,) = wire.expire()
    assert answer.response.error_code == 6
    assert answer.response.responses[0].partitions[0].error_code == 6


def test_a_client_that_is_gone_is_forgotten_by_every_fault() -> None:
    wire = Wire()
    wire.faults.delay("Heartbeat", 300)
    call = wire.call(beat())
    wire.gate.receive(call, 0)
    wire.gate.forget(call.token)
    assert not wire.has_more_to_come()


def test_time_that_the_broker_waits_for_still_comes() -> None:
    wire = Wire()
    commits.commit(wire.cluster.groups, "g", Committer(), {})
    wire.faults.delay("Heartbeat", 10_000)
    wire.send(beat())
    assert wire.gate.next_deadline_ms == 11_000


# ---- whom a request is about ----


def test_groups_members_and_topics_are_found_wherever_a_schema_has_them() -> None:
    wire = Wire()
    by_id = {"name": None, "topic_id": wire.topic_id}
    found = [
        wire.subject(beat()),
        wire.subject(commit()),
        wire.subject(client_request("Metadata", 12, topics=[by_id])),
        wire.subject(client_request("FindCoordinator", 2, key="g", key_type=0)),
        wire.subject(client_request("FindCoordinator", 4, key_type=0, coordinator_keys=["g", "h"])),
        wire.subject(client_request("FindCoordinator", 4, key_type=1, coordinator_keys=["transaction"])),
        wire.subject(
            client_request(
                "OffsetFetch", 9, groups=[{"group_id": "g", "member_id": "m", "member_epoch": 1, "topics": None}]
            )
        ),
        wire.subject(
            client_request("LeaveGroup", 4, group_id="g", members=[{"member_id": "", "group_instance_id": "i"}])
        ),
    ]
    assert [(set(each.groups), set(each.members), set(each.topics)) for each in found] == [
        ({"g"}, {"m", "i"}, set()),
        ({"g"}, set(), {"t"}),
        (set(), set(), {"t"}),
        ({"g"}, set(), set()),
        ({"g", "h"}, set(), set()),
        (set(), set(), set()),
        ({"g"}, {"m"}, set()),
        ({"g"}, {"i"}, set()),
    ]
    assert {each.client_id for each in found} == {"client"}
