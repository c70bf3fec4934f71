"""confluent-kafka: consumers whose group is assigned by one of our strategies, though librdkafka has no hook for that.

::

    from loadwise.assignor.clients.confluent_kafka import confluent_consumer

    consumer = confluent_consumer({"bootstrap.servers": "localhost:9092", "group.id": "g"}, assignor="weighted")
    consumer.subscribe(["flights"], on_assign=..., on_revoke=..., on_lost=...)

A `Membership` joins the group and fetches nothing; librdkafka reads what it is assigned, and joins nothing. Everything
that a ``Consumer`` has is there, and does what it does there. Three things go another way inside: commits carry the
member's id and generation, which librdkafka does not know; callbacks of a rebalance are called by `ConfluentConsumer`
in the user's ``poll``; and ``consumer_group_metadata`` is the member's. docs/confluent-kafka.md has the differences
that can be seen.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import Any
from weakref import proxy

from loadwise.assignor.errors import MissingClientError
from loadwise.installation import pip_install

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
    from kafka.errors import IllegalStateError
    from kafka.structs import OffsetAndMetadata
    from kafka.structs import TopicPartition as Partition
except ImportError as error:
    raise MissingClientError(
        f"confluent-kafka or kafka-python is not installed; get them with: {pip_install('confluent-kafka')}"
    ) from error

from loadwise.assignor.clients.confluent_terms import (
    after,
    as_confluent,
    confluent_error,
    keys,
    listed,
    named,
    not_owned,
    offsets_of,
    polled_late,
    written,
)
from loadwise.assignor.clients.librdkafka_config import OF_THE_MEMBER, member_settings, milliseconds
from loadwise.assignor.clients.membership import WAKE_S, Membership, weakly
from loadwise.assignor.clients.membership_commits import CommitOutcome, Offsets
from loadwise.assignor.live.busy import BusyTime
from loadwise.assignor.participant import AssignorChoice

__all__ = ["ConfluentConsumer", "confluent_consumer"]

log = logging.getLogger(__name__)

TURN_S = WAKE_S
"""How often the member gets its turn while records are read, and how long librdkafka waits for records at a time."""
JOINING_TURN_S = 0.01
"""The same while a join is under way."""
MEASURE_S, MEASURE_SHARE = 0.05, 0.02
"""How often it is measured what the application processes, and what part of all time that may take at most."""
COMMIT_TIMEOUT_S = 60.0
"""How long a synchronous commit waits; librdkafka's ``socket.timeout.ms`` by default."""

_read = Consumer.poll


def confluent_consumer(
    config: Mapping[str, Any],
    *,
    assignor: AssignorChoice = "weighted",
    **options: Any,
) -> ConfluentConsumer:
    """Make a confluent-kafka ``Consumer`` whose group is assigned by one of our strategies.

    ``config`` is what ``Consumer`` takes, callbacks included, without ``partition.assignment.strategy`` and
    ``group.protocol``. ``assignor`` and all ``options`` are those of
    `loadwise.assignor.clients.kafka_python.kafka_consumer`: ``cooperative``, ``capacity``, ``load``,
    ``lag_interval_s``, ``live``, ``on_decision``.

    Raises what that and ``Consumer`` raise, and `UnsupportedByClientError` for a setting that the member cannot honour.
    """
    return ConfluentConsumer(config, assignor=assignor, **options)


class ConfluentConsumer(Consumer):
    """A ``Consumer`` that reads what a `Membership` is assigned. Make it with `confluent_consumer`."""

    def __init__(self, config: Mapping[str, Any], **options: Any) -> None:
        given = {**config.get("default.topic.config", {}), **config}
        given.pop("default.topic.config", None)
        config = {name: value for name, value in given.items() if value is not None}  # None: librdkafka's default
        if not config.get("group.id"):
            raise ValueError("group.id is missing: an assignor is of a group")
        member = member_settings(config, config.get("oauth_cb"))
        own = {name: value for name, value in config.items() if name not in OF_THE_MEMBER}
        self._auto_commit_s = _auto_commit_s(own)
        self._stores = _is_true(own.get("enable.auto.offset.store", True))
        self._on_commit = own.pop("on_commit", None)
        super().__init__(own | {"enable.auto.commit": False})
        self._options = {**member, **options}
        self._member: Membership | None = None  # until there is something to join for: making one asks the brokers
        self._callbacks: dict[str, Callable[[Consumer, list[TopicPartition]], None] | None] = {}
        self._calling = ""  # the callback of a rebalance that is being called
        self._left_to_us = False  # that callback has not assigned or unassigned by itself
        self._stored: dict[Partition, OffsetAndMetadata] = {}  # by `store_offsets`
        self._sent: dict[Partition, int] = {}  # committed last, or on the way
        self._auto_commit_at = monotonic() + self._auto_commit_s
        self._turn_at = 0.0
        self._measured_at = monotonic()
        self._measure_at = 0.0
        self._measured: dict[Partition, int] = {}  # positions at that time
        self._waited_s = 0.0  # for records and in turns of the member, since then
        self._nothing_at: float | None = None  # when a call has ended without records, if the last one has
        self._calm = False  # the member needs no turn yet; its thread takes this back
        self._put_off: Exception | None = None  # what the next call raises

    @property
    def assignor(self) -> Any:
        """The assignor of the member, with ``participant``: what it reports and decides. None before ``subscribe``."""
        return None if self._member is None else self._member.assignor

    # Membership

    def subscribe(
        self,
        topics: list[str],
        on_assign: Callable[[Consumer, list[TopicPartition]], None] | None = None,
        on_revoke: Callable[[Consumer, list[TopicPartition]], None] | None = None,
        on_lost: Callable[[Consumer, list[TopicPartition]], None] | None = None,
    ) -> None:
        """Subscribe to topics, and to those that match where a name begins with ^; the next ``poll`` joins."""
        self._callbacks = {"on_assign": on_assign, "on_revoke": on_revoke, "on_lost": on_lost or on_revoke}
        with as_confluent():
            if self._member is None:
                # Neither keeps this object: who drops it without close() has the member leave its group.
                self._member = Membership(proxy(self), weakly(self._wake), **self._options)
            if any(topic.startswith("^") for topic in topics):
                patterns = (topic if topic.startswith("^") else f"{re.escape(topic)}$" for topic in topics)
                self._member.subscribe(pattern="|".join(f"(?:{pattern})" for pattern in patterns))
            else:
                self._member.subscribe(topics)
        self._calm = False

    def unsubscribe(self) -> None:
        """Give everything up, by ``on_revoke``, and leave the group."""
        if self._member is not None:
            with as_confluent():
                self._member.unsubscribe()

    def poll(self, timeout: float | None = -1) -> Message | None:
        """Answer a message, or None when the timeout (in seconds; without an end where below 0) is over.

        Takes part in rebalances, and calls their callbacks and those of commits. What they raise leaves ``poll``, and
        so does a ``KafkaException`` where the group refuses the member. When the last call was longer ago than
        ``max.poll.interval.ms``, the first answer is a message with the error ``_MAX_POLL_EXCEEDED``.
        """
        # Nothing dearer than this beside each record: `make bench-confluent` shows it.
        if self._calm and self._nothing_at is None:
            message = _read(self, 0)
            if message is not None:
                return message
        ends = None if timeout is None or timeout < 0 else monotonic() + timeout
        if self._was_late():
            return polled_late(self._options["max_poll_interval_ms"])
        self._measure()
        while True:
            began = monotonic()
            message = _read(self, self._take_turn(ends))
            self._waited_s += monotonic() - began
            if message is not None:
                return message
            if ends is not None and monotonic() >= ends:
                self._nothing_at = monotonic()
                return None

    def consume(self, num_messages: int = 1, timeout: float | None = -1) -> list[Message]:
        """Answer up to so many messages, fewer when the timeout is over or a rebalance waits for them.

        What is raised once there are messages is raised by the next call: they would be lost with it.
        """
        messages: list[Message] = []
        ends = None if timeout is None or timeout < 0 else monotonic() + timeout
        if self._was_late():
            return [polled_late(self._options["max_poll_interval_ms"])]
        self._measure()
        while True:
            if messages and self._member is not None and self._member.joining:
                return messages  # they may be of partitions that the next turn gives up
            began = monotonic()
            try:
                messages += super().consume(num_messages - len(messages), self._take_turn(ends))
            except Exception as error:
                if not messages:
                    raise
                self._put_off, self._calm = error, False
                return messages
            self._waited_s += monotonic() - began
            if len(messages) >= num_messages or (ends is not None and monotonic() >= ends):
                if not messages:
                    self._nothing_at = monotonic()
                return messages

    def close(self) -> None:
        """Give everything up, by ``on_revoke``, leave the group, and close."""
        if self._put_off is not None:
            log.error("Nobody has asked for messages since an error was put off", exc_info=self._put_off)
            self._put_off = None
        try:
            if self._member is not None:
                with as_confluent():
                    self._member.close()
        finally:
            super().close()

    def __enter__(self) -> ConfluentConsumer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def consumer_group_metadata(self) -> bytes:
        """What a transaction is fenced by: the member's id and generation (KIP-447).

        Raises ``KafkaException`` while the member is of no generation: librdkafka's own, without one, would let a
        member that was put out commit.
        """
        with as_confluent():
            return written(self._joined().metadata(), super().consumer_group_metadata())

    def memberid(self) -> str:
        """The member's id in its group; empty while it has none."""
        try:
            return "" if self._member is None else self._member.metadata().member_id
        except IllegalStateError:
            return ""

    def _joined(self) -> Membership:
        if self._member is None:
            raise IllegalStateError("the consumer is of no group yet: subscribe comes first")
        return self._member

    # Offsets

    def commit(
        self,
        message: Message | None = None,
        offsets: list[TopicPartition] | None = None,
        asynchronous: bool = True,
        **kwargs: Any,
    ) -> list[TopicPartition] | None:
        """Commit a message's offset, these offsets, or what is stored, with the member's id and generation.

        Raises ``KafkaException`` where a synchronous commit is refused, and where it names a partition that is not
        owned now, which is left out. An asynchronous one tells ``on_commit`` that.
        """
        if kwargs.pop("async", asynchronous) is not asynchronous:  # the name before Python 3.7
            asynchronous = not asynchronous
        if kwargs:
            raise TypeError(f"commit() has no argument {next(iter(kwargs))!r}")
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are two ways to name what to commit; give one of them")
        if message is not None:
            if message.error() is not None:
                raise KafkaException(message.error())
            wanted = offsets_of([after(message)])
        elif offsets is not None:
            wanted = offsets_of(offsets)
        else:
            wanted = self._to_commit()
        if asynchronous:
            self._commit_later(wanted)
            if not wanted and self._on_commit is not None:
                self._on_commit(KafkaError(KafkaError._NO_OFFSET), [])
            return None
        return self._commit_now(wanted)

    def seek(self, partition: TopicPartition) -> None:
        """Read a partition on from another offset."""
        super().seek(partition)
        self._measured = {}

    def store_offsets(self, message: Message | None = None, offsets: list[TopicPartition] | None = None) -> None:
        """Remember what the next commit without arguments, or the next automatic one, commits."""
        if message is not None:
            super().store_offsets(message=message)
            self._stored |= offsets_of([after(message)])
        else:
            super().store_offsets(offsets=offsets)
            self._stored |= offsets_of(offsets or ())

    # Assignments: by the member, and by callbacks of its rebalances.

    def assign(self, partitions: list[TopicPartition]) -> None:
        """In ``on_assign``: read these, from these offsets. Elsewhere what is read follows the group."""
        self._let_callback_do("on_assign")
        super().assign(partitions)

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """In ``on_assign``: read these too, from these offsets. Elsewhere what is read follows the group."""
        self._let_callback_do("on_assign")
        super().incremental_assign(partitions)

    def unassign(self) -> None:
        """In ``on_revoke`` and ``on_lost``: stop reading. Elsewhere what is read follows the group."""
        self._let_callback_do("on_revoke", "on_lost")
        self._commit_what_goes(super().assignment())
        super().unassign()

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """In ``on_revoke`` and ``on_lost``: stop reading these. Elsewhere what is read follows the group."""
        self._let_callback_do("on_revoke", "on_lost")
        self._commit_what_goes(partitions)
        super().incremental_unassign(partitions)

    # What the member tells: a `loadwise.assignor.clients.membership.RebalanceListener`.

    def assigned(self, partitions: Iterable[Partition]) -> None:
        """Read these as well."""
        added = named(partitions)
        try:
            self._call_back("on_assign", added)
        finally:
            if self._left_to_us and added:
                super().incremental_assign(added)
            self._auto_commit_at = monotonic() + self._auto_commit_s

    def revoked(self, partitions: Iterable[Partition]) -> None:
        """Commit these, and read them no more."""
        going = named(partitions)
        try:
            self._call_back("on_revoke", going)
        finally:
            if self._left_to_us:
                self._commit_what_goes(going)
            self._forget(going)

    def lost(self, partitions: Iterable[Partition]) -> None:
        """Read these no more: they are others' already."""
        going = named(partitions)
        try:
            self._call_back("on_lost", going)
        finally:
            self._forget(going)

    def _call_back(self, name: str, partitions: list[TopicPartition]) -> None:
        self._left_to_us = True
        callback = self._callbacks.get(name)
        if callback is None:
            return
        self._calling = name
        try:
            callback(self, partitions)
        finally:
            self._calling = ""

    def _let_callback_do(self, *names: str) -> None:
        if self._calling not in names:
            raise KafkaException(
                KafkaError(
                    KafkaError._STATE,
                    "a consumer with an assignor reads what its group gives it: call this in"
                    f" {' or '.join(names)} only, or use a stock Consumer to assign by hand",
                )
            )
        self._left_to_us = False

    def _forget(self, partitions: list[TopicPartition]) -> None:
        still = {(each.topic, each.partition) for each in super().assignment()}
        left = [each for each in partitions if (each.topic, each.partition) in still]
        if left:
            super().incremental_unassign(left)
        for key in keys(partitions):
            self._measured.pop(key, None)  # if it comes back, others have processed what was in between
            self._stored.pop(key, None)
            self._sent.pop(key, None)

    # Turns of the member

    def _wake(self) -> None:
        """The member wants its turn; called on its thread."""
        self._calm = False

    def _was_late(self) -> bool:
        """Whether the application is to be told now that it has left its group because it polled too late."""
        if self._member is None or not self._member.polled_late:
            return False
        self._member.polled_late = False
        return True

    def _take_turn(self, ends: float | None) -> float:
        """Let the member have its turn where it is due; how long to wait for records afterwards."""
        if self._put_off is not None:
            error, self._put_off = self._put_off, None
            raise error
        now = monotonic()
        left = TURN_S if ends is None else max(0.0, ends - now)
        member = self._member
        if member is None:
            return left
        if self._calm and now < self._turn_at:
            return min(left, self._turn_at - now)
        self._calm = True
        joining = member.joining
        with as_confluent():
            # Nobody reads while all partitions are given up: then the join may be waited for here.
            member.poll(min(left, TURN_S) if joining and not member.owned else 0.0)
        if self._auto_commit_at <= now:
            self._auto_commit_at = now + self._auto_commit_s
            self._commit_later(self._to_commit())
        turn = JOINING_TURN_S if member.joining else TURN_S
        self._turn_at = monotonic() + turn
        return min(left, turn)

    def _measure(self) -> None:
        """Tell how many records the application has processed, and how long it took for that.

        It has processed all that was read whenever it asks for more, and only then. What it does after a call that
        gave nothing is no work on records.
        """
        busy: BusyTime | None = None if self._member is None else self._member.busy
        now = monotonic()
        if self._nothing_at is not None:
            self._waited_s += now - self._nothing_at
            self._nothing_at = None
        if busy is None or now < self._measure_at:
            return
        before, self._measured = self._measured, {key: at.offset for key, at in self._positions().items()}
        records: dict[str, int] = {}
        for key, offset in self._measured.items():
            if (count := offset - before.get(key, offset)) > 0:
                records[key.topic] = records.get(key.topic, 0) + count
        worked_s = max(0.0, now - self._measured_at - self._waited_s)
        now_ns = int(now * 1e9)
        busy.given(records, now_ns - int(worked_s * 1e9))
        busy.polls(now_ns)
        self._measured_at, self._waited_s = now, 0.0
        self._measure_at = now + max(MEASURE_S, (monotonic() - now) / MEASURE_SHARE)

    # Commits

    def _positions(self) -> dict[Partition, OffsetAndMetadata]:
        """The offset behind the last record that was read, where there is one."""
        return offsets_of(super().position(super().assignment()))

    def _to_commit(self) -> dict[Partition, OffsetAndMetadata]:
        """What is stored and was not committed yet: what was read, or what `store_offsets` was given."""
        stored = self._stored
        if self._stores:
            stored = self._positions()
        return {key: offset for key, offset in stored.items() if self._sent.get(key) != offset.offset}

    def _commit_what_goes(self, partitions: Iterable[TopicPartition]) -> None:
        """Commit what is stored of partitions that are about to go, where commits are automatic."""
        if self._auto_commit_s == float("inf") or self._calling == "on_lost":
            return
        going = keys(partitions)
        wanted = {key: offset for key, offset in self._to_commit().items() if key in going}
        if wanted:
            self._commit_later(wanted)  # the member waits for the answer before it joins

    def _commit_later(self, wanted: Offsets) -> None:
        self._sent |= {key: offset.offset for key, offset in wanted.items()}
        if wanted:
            with as_confluent():
                self._joined().commit_async(wanted, self._committed)

    def _committed(self, outcome: CommitOutcome) -> None:
        for key, offset in (*outcome.refused.items(), *outcome.dropped.items()):
            if self._sent.get(key) == offset.offset:
                del self._sent[key]
        if outcome.dropped:
            log.warning("Offsets of partitions that are not owned any more were not committed: %s", outcome.dropped)
        if outcome.error is not None:
            log.warning("A commit was refused: %s", outcome.error)
        if self._on_commit is None:
            return
        if outcome.dropped:
            self._on_commit(not_owned(outcome.dropped), listed(outcome.dropped))
        reached = dict(outcome.committed) | dict(outcome.refused)
        if reached:
            self._on_commit(None if outcome.error is None else confluent_error(outcome.error), listed(reached))

    def _commit_now(self, wanted: Offsets) -> list[TopicPartition]:
        if not wanted:
            raise KafkaException(KafkaError(KafkaError._NO_OFFSET))
        with as_confluent():
            outcome = self._joined().commit(wanted, COMMIT_TIMEOUT_S)
        self._sent |= {key: offset.offset for key, offset in outcome.committed.items()}
        if outcome.dropped:
            raise KafkaException(not_owned(outcome.dropped))
        return listed(outcome.committed)


def _is_true(value: Any) -> bool:
    return str(value).lower() in ("true", "t", "1")


def _auto_commit_s(config: Mapping[str, Any]) -> float:
    """How often to commit what is stored; infinite where nothing is committed unasked."""
    every_ms = milliseconds("auto.commit.interval.ms", config.get("auto.commit.interval.ms", 5000))
    return every_ms / 1000 if _is_true(config.get("enable.auto.commit", True)) and every_ms else float("inf")
