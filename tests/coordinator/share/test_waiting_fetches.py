"""Share fetches that wait, in any order of what may happen meanwhile, under a clock that stands still between steps.

Whoever waits is answered as soon as there is something for it to acquire, and without records only when its time is up
or its session is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from client_messages import client_request
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from record_batches import batch
from seeds import random_walk
from wires import APIS, TOKENS, Wire

from loadwise.coordinator.calls.call import Answer, Call
from loadwise.coordinator.configs.resources import ConfigResourceType
from loadwise.coordinator.share.feature import ShareGroups
from loadwise.coordinator.share.service import ShareKey
from loadwise.coordinator.share.sessions import SessionKey
from loadwise.protocol.messages import decode_request

GROUP = "s"
ACCEPT, RELEASE, REJECT = 1, 2, 3
MEMBERS = st.sampled_from(["a", "b", "c"])
PARTITIONS = st.sampled_from([0, 1])


@dataclass
class Member:
    """What a client knows of its session."""

    connection: int
    epoch: int = 0
    has: list[tuple[int, int, int]] | None = None
    """What it has acquired: partition, first and last offset."""
    waits: tuple[int, int, int] | None = None
    """The token of its fetch that waits, until when, and for how many bytes."""


class WaitingFetches(RuleBasedStateMachine):
    """Three members of a share group, and two partitions."""

    def __init__(self) -> None:
        super().__init__()
        self.wire = Wire()
        self.now_ms = 1000
        self.members = {name: Member(number, has=[]) for number, name in enumerate("abc", 1)}
        limits = {
            "share.auto.offset.reset": "earliest",
            "share.partition.max.record.locks": "100",
            "share.record.lock.duration.ms": "1000",
        }
        self.wire.cluster.resource_configs.put(ConfigResourceType.GROUP, GROUP, limits)

    # ---- what clients do ----

    @rule(name=MEMBERS, numbers=st.sampled_from([(0,), (1,), (0, 1)]), wait_ms=st.sampled_from([0, 500, 1500, 10_000]),
          records=st.sampled_from([1, 20, 500]), least=st.sampled_from([1, 1, 5000]))  # fmt: skip
    def fetch(self, name: str, numbers: tuple[int, ...], wait_ms: int, records: int, least: int) -> None:
        member = self.members[name]
        if member.waits is not None:
            return
        topic = {"topic_id": self.wire.topic_id, "partitions": [{"partition_index": each} for each in numbers]}
        asked = {
            "group_id": GROUP, "member_id": name, "share_session_epoch": member.epoch, "max_wait_ms": wait_ms,
            "min_bytes": least, "max_bytes": 1_000_000, "max_records": records, "batch_size": 20, "topics": [topic],
        }  # fmt: skip
        self.send("ShareFetch", asked, member, (wait_ms, least))

    @rule(name=MEMBERS, kind=st.sampled_from([ACCEPT, RELEASE, REJECT]))
    def acknowledge(self, name: str, kind: int) -> None:
        member = self.members[name]
        if member.waits is not None or not member.has or member.epoch == 0:
            return
        number, first, last = member.has.pop(0)
        told = {"first_offset": first, "last_offset": last, "acknowledge_types": [kind]}
        row = {"partition_index": number, "acknowledgement_batches": [told]}
        topic = {"topic_id": self.wire.topic_id, "partitions": [row]}
        asked = {
            "group_id": GROUP, "member_id": name, "share_session_epoch": member.epoch, "topics": [topic],
        }  # fmt: skip
        self.send("ShareAcknowledge", asked, member, None)

    @rule(name=MEMBERS)
    def hang_up(self, name: str) -> None:
        member = self.members[name]
        if member.waits is not None:
            self.wire.router.forget(member.waits[0])
        gone = member.connection
        self.members[name] = Member(max(each.connection for each in self.members.values()) + 1, has=[])
        self.take(self.wire.router.disconnected(gone, self.now_ms))

    @rule(number=PARTITIONS, count=st.integers(1, 70))
    def produce(self, number: int, count: int) -> None:
        log = self.wire.cluster.topics.log("t", number)
        assert log is not None
        self.wire.cluster.grown(log, log.append(batch([b"x"] * count)))
        self.take(self.wire.router.expire(self.now_ms))

    @rule(number=PARTITIONS, share=st.floats(0, 1))
    def delete_records(self, number: int, share: float) -> None:
        log = self.wire.cluster.topics.log("t", number)
        assert log is not None
        self.wire.cluster.delete_records(log, log.start_offset + int((log.end_offset - log.start_offset) * share))
        self.take(self.wire.router.expire(self.now_ms))

    @rule(passed_ms=st.sampled_from([0, 1, 400, 999, 1000, 5000]))
    def pass_time(self, passed_ms: int) -> None:
        until_ms = self.now_ms + passed_ms
        while (due := self.wire.router.next_deadline_ms) is not None and due <= until_ms:  # as the server does
            self.now_ms = max(self.now_ms, due)
            self.take(self.wire.router.expire(self.now_ms))
        self.now_ms = until_ms
        self.take(self.wire.router.expire(self.now_ms))

    # ---- what has to be so ----

    def send(self, api: str, asked: dict[str, Any], member: Member, waits: tuple[int, int] | None) -> None:
        request = client_request(api, 1, **asked)
        request.with_header(7, "client")
        token = next(TOKENS)
        member.epoch += 1
        frame = decode_request(bytes(request.encode(header=True)), APIS)
        call = Call(token, frame, "/127.0.0.1", connection_id=member.connection)
        if waits is not None:
            member.waits = (token, self.now_ms + waits[0], waits[1])
        self.take(self.wire.router.receive(call, self.now_ms))

    def take(self, answers: list[Answer]) -> None:
        for answer in answers:
            assert answer.response.error_code == 0
            if answer.call.request.api.name != "ShareFetch":
                continue
            token = answer.call.token
            (member,) = [each for each in self.members.values() if each.waits is not None and each.waits[0] == token]
            assert member.waits is not None
            assert member.has is not None
            got = [
                (row.partition_index, each.first_offset, each.last_offset)
                for topic in answer.response.responses for row in topic.partitions for each in row.acquired_records
            ]  # fmt: skip
            assert got or self.now_ms >= member.waits[1], "it was answered before its time, without records"
            member.has += got
            member.waits = None

    @invariant()
    def nobody_waits_for_what_is_there(self) -> None:
        for name, member in self.members.items():
            if member.waits is None:
                continue
            assert self.now_ms < member.waits[1], f"the time of {name} is up"
            shares = ShareGroups.of(self.wire.cluster).shares
            session = shares.sessions.get(SessionKey(1, GROUP, name))
            assert session is not None
            for topic_id, number in session.part(0, len(session)):
                share = shares.known(ShareKey(GROUP, topic_id, number))
                log = self.wire.cluster.topics.log("t", number)
                assert share is not None
                assert log is not None
                is_there = share.has_room and share.next_fetch_offset < log.high_watermark
                assert member.waits[2] > 1 or not is_there, f"{name} waits for what is in partition {number}"


TestWaitingFetches = random_walk(WaitingFetches, walks=60, steps=40)
