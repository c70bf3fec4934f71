"""confluent-kafka's consumer with our assignors."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, Unpack
from weakref import proxy

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from loadwise.assignor.clients.arguments import check_choice, check_names
from loadwise.assignor.clients.confluent_kafka.callbacks import Callback, RebalanceCallbacks
from loadwise.assignor.clients.confluent_kafka.commits import StoredOffsets
from loadwise.assignor.clients.confluent_kafka.terms import (
    after,
    as_confluent,
    check_subscription,
    keys,
    listed_partitions,
    named,
    not_available,
    offsets_of,
    polled_late,
    without_note,
    written,
)
from loadwise.assignor.clients.confluent_kafka.unknown_settings import nearest_setting
from loadwise.assignor.clients.confluent_kafka.work import WorkBetweenCalls
from loadwise.assignor.clients.factory import BalancedConsumer, Options
from loadwise.assignor.clients.held_polls import polled_alone
from loadwise.assignor.clients.membership import (
    OF_THE_MEMBER,
    WAKE_S,
    Membership,
    OffsetAndMetadata,
    Partition,
    ToldOnce,
    member_errors,
    member_settings,
    planned_member,
    weakly,
)
from loadwise.nearest import nearest

__all__ = ["ConfluentConsumer", "confluent_consumer"]

log = logging.getLogger(__name__)

TURN_S = WAKE_S
"""How often the member is polled while records are read, and librdkafka's poll timeout meanwhile."""
JOINING_TURN_S = 0.01
"""The same during a join."""
CHOICES = {
    "auto.offset.reset": ("earliest", "latest", "beginning", "end", "smallest", "largest", "error"),
    "isolation.level": ("read_uncommitted", "read_committed"),
    "security.protocol": ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
}
"""Settings that librdkafka and the member both check; here under librdkafka's names."""
LEADERS_WITHIN_S, MOST_TOPICS_ASKED_FOR = 1.0, 10
"""How long to wait for the leaders of a topic, and of how many topics to ask for them before the first fetch."""

_CONFIG = "a dict with librdkafka's names, such as {'group.id': 'billing'}; subscribe() takes the topics"
_read, _consume = Consumer.poll, Consumer.consume


def confluent_consumer(
    config: Mapping[str, Any],
    **options: Unpack[Options],
) -> ConfluentConsumer:
    """Return a confluent-kafka ``Consumer`` whose group uses one of loadwise's assignors.

    Raises what ``Consumer`` and `loadwise.kafka_python_consumer` raise, and `UnsupportedByClientError` for a setting
    that is not supported.

    Args:
        config: The configuration of ``Consumer``, including callbacks, but without ``partition.assignment.strategy``
            and ``group.protocol``.
        options: ``assignor``, ``capacity``, ``load``, ``lag_interval_s``, ``live`` and ``on_decision``, as for
            `loadwise.kafka_python_consumer`.

    """
    return ConfluentConsumer(config, **options)


class ConfluentConsumer(BalancedConsumer, Consumer):
    """A ``Consumer`` that reads the partitions of a `Membership`: see `confluent_consumer`."""

    def __init__(self, config: Mapping[str, Any], **options: Unpack[Options]) -> None:
        if not isinstance(config, Mapping):
            raise TypeError(f"config is {config!r}; it must be {_CONFIG}")
        check_names("confluent_consumer", options, Options.__annotations__, f"; other settings are in {_CONFIG}")
        given = {**config.get("default.topic.config", {}), **config}
        given.pop("default.topic.config", None)
        config = {name: value for name, value in given.items() if value is not None}  # None: librdkafka's default
        if not config.get("group.id"):
            near = nearest("group.id", config)
            instead = f" (is it {near!r}?)" if near else ""
            raise ValueError(f"group.id is missing{instead}: a consumer with an assignor needs a group")
        for name, choices in CHOICES.items():
            check_choice(name, config.get(name), choices)
        own = {name: value for name, value in config.items() if name not in OF_THE_MEMBER}
        self._commits = StoredOffsets(own, own.pop("on_commit", None))
        settings = member_settings(config, config.get("oauth_cb")) | self._commits.member_settings
        self._plan = planned_member(settings, **options)
        with nearest_setting():
            super().__init__(own | {"enable.auto.commit": False})
        self._member: Membership | None = None  # created by subscribe, because creating it contacts the brokers
        self._callbacks = RebalanceCallbacks()
        self._work = WorkBetweenCalls(monotonic())
        self._auto_commit_at = monotonic() + self._commits.every_s
        self._turn_at = 0.0
        self._calm = False  # the member needs no poll yet; its thread resets this
        self._put_off: Exception | None = None  # raised by the next call
        self._commits_by_hand = False
        self._alone = False  # the thread that polls polls this consumer only
        self._waits_until = 0.0  # for an eager join
        self._held: frozenset[Partition] = frozenset()  # fetched until the end of that join, but not returned
        self._told_topics = ToldOnce()
        self._topic_errors: deque[tuple[str, int]] = deque()  # returned by the next calls
        self._closed = False

    # Membership

    def subscribe(
        self,
        topics: list[str],
        on_assign: Callback | None = None,
        on_revoke: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Subscribe to topics, or to patterns, which begin with ^; the next ``poll`` joins."""
        self._check_open()
        check_subscription(topics, on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
        self._callbacks.given = {"on_assign": on_assign, "on_revoke": on_revoke, "on_lost": on_lost or on_revoke}
        with as_confluent():
            if self._member is None:
                # Neither refers to this object, so that dropping it without close() makes the member leave.
                self._member = Membership(proxy(self), self._plan, weakly(self._wake))
            if any(topic.startswith("^") for topic in topics):
                patterns = (topic if topic.startswith("^") else f"{re.escape(topic)}$" for topic in topics)
                self._member.subscribe(pattern="|".join(f"(?:{pattern})" for pattern in patterns))
            else:
                self._member.subscribe(topics)
        self._calm = False

    def unsubscribe(self) -> None:
        """Revoke everything with ``on_revoke``, and leave the group."""
        self._check_open()
        if self._member is not None:
            with as_confluent():
                self._member.unsubscribe()

    def poll(self, timeout: float | None = -1) -> Message | None:
        """Return a message, or None after the timeout in seconds (below 0: none).

        Takes part in rebalances, and calls their callbacks and those of commits. Their exceptions propagate, and so
        does a ``KafkaException`` if the group refuses the member. If the last call was longer ago than
        ``max.poll.interval.ms``, the first result is a message with the error ``_MAX_POLL_EXCEEDED``.
        """
        # This runs for each record, so keep it cheap: `make bench-confluent` measures it.
        if self._calm and self._work.idle_since_s is None:
            message = _read(self, 0)
            if message is not None:
                return message
        messages = self._gather(1, timeout, self._read_one)
        return messages[0] if messages else None

    def consume(self, num_messages: int = 1, timeout: float | None = -1) -> list[Message]:
        """Return up to ``num_messages`` messages, fewer after the timeout or if a rebalance waits.

        An exception that occurs once there are messages is raised by the next call, so that they are not lost.
        """
        return self._gather(num_messages, timeout, partial(_consume, self))

    def _read_one(self, _: int, timeout_s: float) -> list[Message]:
        message = _read(self, timeout_s)
        return [] if message is None else [message]

    def _gather(self, most: int, timeout: float | None, read: Callable[[int, float], list[Message]]) -> list[Message]:
        messages: list[Message] = []
        asked = None if timeout is None or timeout < 0 else monotonic() + timeout
        self._alone = polled_alone(self)
        self._measure(most)
        try:
            if self._was_late():
                return [polled_late(self._plan.config["max_poll_interval_ms"])]
            while True:
                if messages and self._member is not None and self._member.joining:
                    return messages  # the next poll of the member may revoke their partitions
                try:
                    messages += self._wait(partial(read, most - len(messages)), self._ends(asked))
                except Exception as error:
                    if not messages:
                        raise
                    self._put_off, self._calm = error, False
                    return messages
                while self._topic_errors and len(messages) < most:
                    messages.append(not_available(*self._topic_errors.popleft()))
                ends = self._ends(asked)
                if len(messages) >= most or (ends is not None and monotonic() >= ends):
                    return messages
        finally:
            self._let_go()
            if not any(message.error() is None for message in messages):
                self._work.idle_since_s = monotonic()

    def _ends(self, asked: float | None) -> float | None:
        """Return when a poll ends: see `loadwise.assignor.clients.held_polls`."""
        member = self._member
        if asked is None or member is None or not (member.joins_eagerly and self._waits_until):
            return asked
        # Once all have joined, commits are refused until the join has ended.
        return max(asked, self._waits_until + (0.0 if member.commits_what_it_left else member.longest_wait_s))

    def close(self) -> None:
        """Revoke everything with ``on_revoke``, leave the group, and close."""
        if self._put_off is not None:
            log.error("A deferred error was never raised because no messages were requested", exc_info=self._put_off)
            self._put_off = None
        try:
            if self._member is not None:
                with as_confluent():
                    self._member.close()
        finally:
            self._closed = True
            super().close()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Consumer closed")

    def __enter__(self) -> ConfluentConsumer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def consumer_group_metadata(self) -> bytes:
        """Return the member's id and generation for transactions (KIP-447).

        Raises ``KafkaException`` while the member has no generation. librdkafka's own metadata would then let an
        evicted member commit.
        """
        self._check_open()
        with as_confluent():
            return written(self._joined().metadata(), super().consumer_group_metadata())

    def memberid(self) -> str:
        """Return the member's id in its group; empty while it has none."""
        self._check_open()
        try:
            return "" if self._member is None else self._member.metadata().member_id
        except member_errors.IllegalStateError:
            return ""

    def _joined(self) -> Membership:
        if self._member is None:
            raise KafkaException(KafkaError(KafkaError._STATE, "the consumer is not in a group yet: subscribe first"))
        return self._member

    # Offsets

    def commit(
        self,
        message: Message | None = None,
        offsets: list[TopicPartition] | None = None,
        asynchronous: bool = True,
        **kwargs: Any,
    ) -> list[TopicPartition] | None:
        """Commit a message's offset, these offsets, or stored ones, with the member's id and generation.

        A synchronous commit raises ``KafkaException`` if it is refused or names a partition that is not owned now.
        Such partitions are left out. An asynchronous commit passes the error to ``on_commit``.
        """
        self._check_open()
        self._commits_by_hand = True
        if kwargs.pop("async", asynchronous) is not asynchronous:  # the name before Python 3.7
            asynchronous = not asynchronous
        if kwargs:
            raise TypeError(f"commit() has no argument {next(iter(kwargs))!r}")
        if message is not None and offsets is not None:
            raise ValueError("message and offsets both name what to commit; give one of them")
        if message is not None:
            if not isinstance(message, Message):
                raise TypeError(f"message is {message!r}; it must be a Message")
            if message.error() is not None:
                raise KafkaException(message.error())
            wanted = offsets_of([after(message)])
        elif offsets is not None:
            wanted = offsets_of(listed_partitions(offsets))
        else:
            wanted = self._to_commit()
        if asynchronous and wanted:
            self._commits.later(self._joined(), wanted)
        elif asynchronous:
            self._commits.tell_of_nothing()
        elif wanted:
            return self._commits.now(self._joined(), wanted)
        else:
            raise KafkaException(KafkaError(KafkaError._NO_OFFSET))
        return None

    def seek(self, partition: TopicPartition) -> None:
        """Continue a partition at another offset."""
        super().seek(partition)
        self._work.moved()

    def store_offsets(self, message: Message | None = None, offsets: list[TopicPartition] | None = None) -> None:
        """Store offsets for the next commit without arguments, or the next automatic one."""
        given: dict[str, Any] = {"message": message, "offsets": offsets}
        super().store_offsets(**{name: value for name, value in given.items() if value is not None})
        self._commits.store(offsets_of([after(message)] if message is not None else offsets or ()))

    def committed(self, partitions: list[TopicPartition], *args: Any, **kwargs: Any) -> list[TopicPartition]:
        """Return the committed offsets with the user's own metadata, without our notes."""
        return [without_note(each) for each in super().committed(partitions, *args, **kwargs)]

    # Assignments, by the member and by its rebalance callbacks.

    def assign(self, partitions: list[TopicPartition]) -> None:
        """In ``on_assign``: read these partitions from these offsets. Elsewhere the group decides."""
        self._check_open()
        self._callbacks.decides("on_assign")
        super().assign(partitions)

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """In ``on_assign``: also read these partitions from these offsets. Elsewhere the group decides."""
        self._check_open()
        self._callbacks.decides("on_assign")
        super().incremental_assign(partitions)

    def unassign(self) -> None:
        """In ``on_revoke`` and ``on_lost``: stop reading. Elsewhere the group decides."""
        self._check_open()
        self._callbacks.decides("on_revoke", "on_lost")
        self._commit_what_goes(super().assignment())
        super().unassign()

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """In ``on_revoke`` and ``on_lost``: stop reading these partitions. Elsewhere the group decides."""
        self._check_open()
        self._callbacks.decides("on_revoke", "on_lost")
        self._commit_what_goes(partitions)
        super().incremental_unassign(partitions)

    # Callbacks of the member: a `loadwise.assignor.clients.membership.member.RebalanceListener`.

    def assigned(self, partitions: Iterable[Partition]) -> None:
        """Also read these partitions."""
        added = named(self._without_held(partitions))
        self._find_leaders({each.topic for each in added})
        try:
            self._callbacks.call("on_assign", self, added)
        finally:
            if self._callbacks.left_to_us and added:
                super().incremental_assign(added)
            self._auto_commit_at = monotonic() + self._commits.every_s

    def revoked(self, partitions: Iterable[Partition]) -> None:
        """Commit these partitions and stop reading them."""
        going = named(partitions)
        member = self._joined()
        self._waits_until = 0.0
        if self._commits_by_hand and self._alone and member.joins_eagerly:
            self._waits_until = monotonic() + member.longest_wait_s
            if not any(self._callbacks.given.values()):
                self._commit_what_goes(going)
                self._held = frozenset(partitions)
                return
        try:
            self._callbacks.call("on_revoke", self, going)
        finally:
            if self._callbacks.left_to_us:
                self._commit_what_goes(going)
            self._forget(going)

    def lost(self, partitions: Iterable[Partition]) -> None:
        """Stop reading these partitions, which others may already own."""
        going = named(partitions)
        try:
            self._callbacks.call("on_lost", self, going)
        finally:
            self._forget(going)

    def _without_held(self, assigned: Iterable[Partition]) -> frozenset[Partition]:
        """Return the partitions that are to be read from their committed offsets, and let go of held ones that moved.

        A program without callbacks does not know that a partition was revoked if it gets it back. It may still have
        records of it, and commits these. So it must not get them again.
        """
        back = self._held.intersection(assigned) if self._joined().unbroken else frozenset[Partition]()
        self._held -= back
        self._let_go()
        return frozenset(assigned) - back

    def _let_go(self) -> None:
        if self._held:
            going, self._held = self._held, frozenset()
            self._forget(named(going))

    def _find_leaders(self, topics: set[str]) -> None:
        """Ask for the leaders of topics before their first fetch. librdkafka itself would ask up to 1.5 s later."""
        new = topics - {each.topic for each in super().assignment()}
        if len(new) <= MOST_TOPICS_ASKED_FOR:
            with suppress(KafkaException):  # librdkafka asks again later, and reports what is wrong
                for topic in new:
                    self.list_topics(topic, LEADERS_WITHIN_S)

    def _forget(self, partitions: list[TopicPartition]) -> None:
        still = {(each.topic, each.partition) for each in super().assignment()}
        left = [each for each in partitions if (each.topic, each.partition) in still]
        if left:
            super().incremental_unassign(left)
        gone = keys(partitions)
        self._work.gone(gone)
        self._commits.forget(gone)

    # Polling the member

    def _wake(self) -> None:
        """Note that the member needs a poll; called on its thread."""
        self._calm = False

    def _was_late(self) -> bool:
        """Whether to report now that the member left its group because the application polled too late."""
        if self._member is None or not self._member.polled_late:
            return False
        self._member.polled_late = False
        return True

    def _take_turn(self, ends: float | None) -> float:
        """Poll the member if that is due; return how long to wait for records afterwards."""
        self._check_open()
        if self._put_off is not None:
            error, self._put_off = self._put_off, None
            raise error
        now = monotonic()
        left = TURN_S if ends is None else max(0.0, ends - now)
        member = self._member
        if member is None:
            return left
        if self._calm and now < self._turn_at and not self._held:
            return min(left, self._turn_at - now)
        self._calm = True
        joining = member.joining
        with as_confluent():
            # While all partitions are revoked there is nothing to read, so wait for the join here.
            member.poll(min(left, TURN_S) if joining and not member.owned else 0.0)
        self._topic_errors += self._told_topics.news(member.topic_errors)
        if self._auto_commit_at <= now:
            self._auto_commit_at = now + self._commits.every_s
            if wanted := self._to_commit():
                self._commits.later(member, wanted)
        turn = JOINING_TURN_S if member.joining else TURN_S
        self._turn_at = monotonic() + turn
        return min(left, turn)

    def _wait(self, read: Callable[[float], list[Message]], ends: float | None) -> list[Message]:
        """Return what ``read`` gives within one turn; the wait does not count as work on records."""
        began = monotonic()
        try:
            wait_s = self._take_turn(ends)
            return [] if self._held else read(wait_s)
        finally:
            self._work.waited(monotonic() - began)

    def _measure(self, most: int) -> None:
        """Report from time to time what the application has processed."""
        now = monotonic()
        busy = None if self._member is None else self._member.busy
        if self._work.asks(most, now) and busy is not None:
            self._work.measure(busy, self._positions(), now)
            self._work.took(monotonic() - now)

    # Commits

    def _positions(self) -> dict[Partition, OffsetAndMetadata]:
        """Return the offset after the last record that was read, if any."""
        return offsets_of(super().position(super().assignment()))

    def _to_commit(self) -> dict[Partition, OffsetAndMetadata]:
        """Return stored offsets that were not committed yet, from reading or from `store_offsets`."""
        return self._commits.wanted(self._positions() if self._commits.stores_what_is_read else None)

    def _commit_what_goes(self, partitions: Iterable[TopicPartition]) -> None:
        """Commit the stored offsets of partitions that are about to be revoked, with auto-commit."""
        if self._commits.every_s == float("inf") or self._callbacks.calling == "on_lost":
            return
        going = keys(partitions)
        wanted = {key: offset for key, offset in self._to_commit().items() if key in going}
        if wanted:
            self._commits.later(self._joined(), wanted)  # the member waits for the answer before it joins
