"""Consumers of confluent-kafka with our assignors in one group, all polled by the thread of the test."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError
from topics import WAIT_S

from loadwise import ConfluentConsumer, confluent_consumer


class ConfluentGroup:
    """Joins members to one group, polls them in turn, and notes what they read and what their callbacks were told."""

    def __init__(self, bootstrap_servers: str, group_id: str) -> None:
        self.settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 30_000,
            "log_level": 0,
        }
        self.members: list[ConfluentConsumer] = []
        """Those that `until` polls."""
        self.read: dict[ConfluentConsumer, list[tuple[int, int]]] = {}
        """Partition and offset of every record, by member."""
        self.errors: dict[ConfluentConsumer, list[KafkaError]] = {}
        """What they were told by messages that are errors."""
        self.calls: dict[ConfluentConsumer, list[tuple[str, set[int]]]] = {}
        """The callbacks of rebalances, with their partitions."""

    def make(self, *, strategy: str = "weighted", **settings: Any) -> ConfluentConsumer:
        """Make a consumer that has not subscribed yet."""
        member = confluent_consumer(
            self.settings | {name.replace("_", "."): value for name, value in settings.items()}, assignor=strategy
        )
        self.members.append(member)
        self.read[member], self.errors[member], self.calls[member] = [], [], []
        return member

    def join(self, topic: str, *, strategy: str = "weighted", **settings: Any) -> ConfluentConsumer:
        """Make a consumer that joins when it is polled; settings by librdkafka's names with _ for each dot."""
        on_commit = {"on_commit": settings.pop("on_commit")} if "on_commit" in settings else {}
        self.settings |= on_commit
        member = self.make(strategy=strategy, **settings)
        for name in on_commit:
            del self.settings[name]

        def noting(name: str) -> Callable[[Any, list[Any]], None]:
            return lambda _, partitions: self.calls[member].append((name, {each.partition for each in partitions}))

        member.subscribe([topic], **{name: noting(name) for name in ("on_assign", "on_revoke", "on_lost")})
        return member

    def poll(self) -> None:
        """Poll every member once."""
        for member in self.members:
            message = member.poll(0.02)
            if message is not None:
                if message.error() is None:
                    self.read[member].append((message.partition(), message.offset()))
                else:
                    self.errors[member].append(message.error())

    def until(self, condition: Callable[[], Any]) -> None:
        """Poll until something holds."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, [self.owned(member) for member in self.members]
            self.poll()

    def owned(self, member: ConfluentConsumer) -> set[int]:
        """The partitions that a member reads."""
        return {each.partition for each in member.assignment()}

    def settle(self, *counts: int) -> list[set[int]]:
        """Poll until the members own so many partitions, none of them twice."""

        def settled() -> bool:
            owned = [self.owned(member) for member in self.members]
            return [len(each) for each in owned] == list(counts) and len(set().union(*owned)) == sum(counts)

        self.until(settled)
        return [self.owned(member) for member in self.members]

    def leave(self, member: ConfluentConsumer) -> None:
        """Close a member."""
        self.members.remove(member)
        member.close()

    def close(self) -> None:
        """Close all members, which have heard of no error but those that a test has taken out of `errors`."""
        while self.members:
            self.members.pop().close()
        assert not any(self.errors.values()), self.errors
