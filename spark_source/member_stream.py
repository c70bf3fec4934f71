"""A streaming query that is a member of a consumer group (``assignment.mode=member``).

::

    initialOffset     empty: the group's commits come first
    latestOffset      commits what Spark has processed, takes part in rebalances, and returns the end of the data
    partitions        the ranges in the end offset: a replay does not contact the group
    stop              leaves the group: when the driver stops the query or dies

Everything about the group happens in `LoadwiseMemberReader.latestOffset`, between two micro-batches. During a
micro-batch, kafka-python's thread sends heartbeats, and a rebalance waits. Decisions are made in
`loadwise.spark_source.planning.member_progress`.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from time import monotonic
from typing import IO, TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from loadwise.assignor.model import TopicPartition
from loadwise.installation import pip_install
from loadwise.spark_source.cluster.application import FOLDERS, claimed
from loadwise.spark_source.errors import MissingDependencyError, OptionError
from loadwise.spark_source.options.bounds import EARLIEST, LATEST
from loadwise.spark_source.options.membership import GroupMember
from loadwise.spark_source.options.topics import named_topics
from loadwise.spark_source.planning.member_progress import Holdings, MemberOffset, apart, as_json, member_offset
from loadwise.spark_source.planning.progress import MODE, Positions, apart_from_recreated
from loadwise.spark_source.planning.query import shared_out
from loadwise.spark_source.pyspark_version import ReadAllAvailable, ReadLimit
from loadwise.spark_source.stream import LoadwiseStreamReader

if TYPE_CHECKING:
    from loadwise.spark_source.cluster.group_members import GroupMembers

logger = logging.getLogger(__name__)

DEFAULT_MAX_POLL_INTERVAL_MS = 300_000
"""kafka-python's and Java's ``max.poll.interval.ms``."""
COMMIT_TIMEOUT_S = 10.0
"""The timeout of a commit; the stream does not read on before the answer."""


class LoadwiseMemberReader(LoadwiseStreamReader):
    """Implements a stream that reads the partitions of its group membership."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(options, schema)
        self._members: GroupMembers | None = None
        self._claim: IO[bytes] | None = None
        self._leaving: AbstractContextManager[Any] = nullcontext()
        """Held while leaving the group, because stopping a query disconnects this process and ends it."""
        self._holdings = Holdings()
        self._gone: set[TopicPartition] = set()
        """Deleted partitions that were owned and have not reappeared (``failOnDataLoss=false``)."""
        self._began_without_topics = False
        self._asked_at: float | None = None
        """When Spark last requested a micro-batch."""
        self._warned = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - as Spark calls it
        """Return the offset before the first micro-batch of a new query. Raises `OptionError`."""
        return as_json(MemberOffset(self._member.group))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - as Spark calls it
        """Refuse this trigger: a group does not assign everything to one member. Raises `OptionError`."""
        self._refuse_to_end("availableNow")

    # Member mode needs PySpark 4.2, which always names both.
    def latestOffset(  # type: ignore[override]  # noqa: N802
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        """Return the end of the micro-batch after ``start``, or ``start`` if there is nothing to read.

        Raises `OptionError` for a checkpoint of another mode or group, `GroupUnavailableError` if the group refuses
        the stream, and what the reader of other streams raises.
        """
        begun = member_offset(start, self._member.group)
        if isinstance(limit, ReadAllAvailable):
            self._refuse_to_end("once")
        self._note_the_time()
        if not begun.positions and not self._began_without_topics:
            # The start of partitions without a commit. Spark stores it before anything is read, so that "latest" is one
            # point in time, whoever owns a partition first.
            options = self._options
            topics = self._kafka.found(options, with_ids=True)
            found = self._kafka.resolved(options.starting, topics.partitions)
            if found:
                self._asked_at = monotonic()
                return as_json(MemberOffset(begun.group, found, ids=topics.ids))
            self._began_without_topics = True  # a pattern may match none; later topics are new
        end = self._end_behind(begun)
        self._asked_at = monotonic()
        self._answered = start if end is begun else as_json(end)
        return self._answered

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return one input partition for each task of the plan with data. Raises what planning raises."""
        if start == end:
            return []
        ended = member_offset(end, self._member.group)
        ranges = ended.ranges()
        if end != self._answered:
            # It was planned before this process started. Topics recreated since cannot be read any more.
            same, losses = apart_from_recreated(ended.begins, ended.ids, self._ids_now(ended.ids.keys(), ended.ids))
            self._lose(losses)
            ranges = tuple(wanted for wanted in ranges if (wanted.topic, wanted.partition) in same)
        if not ranges:
            return []
        planned = shared_out(ranges, self._options, self._kafka.client, sticky=True, learned=self._record_bytes)
        self._log("%s", planned)
        return [InputPartition(task) for task in planned.filled]

    def stop(self) -> None:
        """Leave the group, and close the connection to Kafka."""
        try:
            self._leave()
        finally:
            if self._claim is not None:
                self._claim.close()
            super().stop()

    @property
    def _member(self) -> GroupMember:
        member = self._options.stream.member
        assert member is not None, "streamReader() makes this class for assignment.mode=member alone"
        return member

    @property
    def _joined(self) -> GroupMembers:
        if self._members is None:
            if find_spec("kafka") is None:
                raise MissingDependencyError(
                    "assignment.mode=member needs kafka-python where the driver runs, which is not installed there; get"
                    f" it with: {pip_install('kafka-python')}"
                )
            from loadwise.spark_source.cluster.group_members import GroupMembers  # noqa: PLC0415 - needs kafka-python

            options, member = self._options, self._member
            # A member gives up after a few seconds without a broker; look-ups outlast an outage.
            self._kafka.found(options, known=named_topics(options.topics))
            self._leave_when_stopped()
            if self._claim is None:
                self._claim = claimed(member.group, options.client.settings["bootstrap.servers"])
            self._members = GroupMembers(options.client, member, options.topics)
            self._log(
                "joining group %s as %d member(s); if trigger interval and micro-batch together take longer than"
                " kafka.max.poll.interval.ms (%d ms), the group evicts the stream and others read its records again",
                member.group,
                member.members,
                self._most_ms,
            )
        return self._members

    def _end_behind(self, begun: MemberOffset) -> MemberOffset:
        """Commit processed offsets, take part in rebalances, and look up what there is to read."""
        members, holdings, options = self._joined, self._holdings, self._options
        members.asked()
        holdings.given_back(begun)
        if holdings.owned:
            # Before the commits: the coordinator would accept offsets of the old topic for the new one.
            begun = self._without_recreated(begun, {})
        self._commit()
        changes = members.take_part(options.client.api_timeout_ms / 1000)
        if changes is None:
            self._log("group %s has rebalanced for %d ms; retrying", members.group, options.client.api_timeout_ms)
            return begun
        taken = {place: at for place, at in holdings.held.items() if place in changes.lost}
        holdings.lost(changes.lost)
        if changes.gained:
            commits = self._kafka.committed(changes.gained)
            begun = self._without_recreated(begun, commits)
            unknown = [place for place, commit in commits.items() if commit is None and place not in begun.positions]
            jumps = holdings.gained(begun, commits, self._kafka.offsets(EARLIEST, unknown))
            self._log("group %s: this stream now owns %d partitions", members.group, len(holdings.owned))
            for jump in jumps:
                self._log("group %s: continues in %s", members.group, jump)
        self._commit()
        ends = self._ends_of(holdings.held, taken)
        self._latest = dict(ends)
        end = holdings.next_offset(begun, ends, most=options.stream.max_offsets, generation=members.generation)
        left = any(ends.get(place, -1) > end.positions.get(place, at) for place, at in holdings.held.items())
        if left and end is not begun:
            members.given({place: end.positions[place] - at for place, at in end.begins.items()})
        return end

    def _without_recreated(self, begun: MemberOffset, commits: Mapping[TopicPartition, int | None]) -> MemberOffset:
        """Return ``begun`` without positions in recreated topics; ``commits`` are those of newly owned partitions.

        Unread records of the old topic are lost. The stream continues at commits of other members in the new topic.
        """
        held = self._holdings.held
        stood = {**begun.positions, **held}
        topics = {place.topic for place in (*stood, *commits)}
        known = {topic: id_ for topic, id_ in begun.ids.items() if topic in topics}
        ids = known | self._ids_now(topics, known)
        if ids == begun.ids:
            return begun
        same, _ = apart_from_recreated(begun.positions, begun.ids, ids)
        mine = {place for place in held if place not in self._gone} | {
            place for place, commit in commits.items() if commit is None
        }
        mine_stood = {place: at for place, at in stood.items() if place in mine}
        kept, losses = apart_from_recreated(mine_stood, begun.ids, ids)
        self._lose(losses)
        anew = [place for place in held if place in mine and place not in kept]
        # It may have fewer partitions now.
        self._holdings.moved(self._kafka.offsets(EARLIEST, self._kafka.there(anew)) if anew else {})
        return apart(begun, same, ids)

    def _commit(self) -> None:
        """Commit processed offsets; stop reading partitions whose commit the coordinator refuses."""
        offsets = self._holdings.to_commit()
        if offsets:
            self._holdings.acknowledged(self._joined.commit(offsets, COMMIT_TIMEOUT_S))

    def _ends_of(self, held: Positions, taken: Positions) -> dict[TopicPartition, int]:
        """Return where the owned partitions end now, without deleted ones.

        The stream keeps a deleted partition until the group revokes it, which may not happen if the topic is
        recreated. If the group notices the deletion first, the loss is reported from the partitions just ``taken``.
        """
        known = {**taken, **held}
        for _ in self._attempts():
            there = self._kafka.there(known) if known else []
            ends: dict[TopicPartition, int] = self._kafka.offsets(LATEST, [place for place in there if place in held])
            new = self._gone & ends.keys()
            # A broker may lag behind for a moment; believing it would repeat or lose records.
            gone = [place for place in known if place not in there and place not in self._gone]
            behind = {place: end for place, end in ends.items() if end < held[place] and place not in new}
            if not gone and not behind:
                break
        self._lose(
            tuple(
                f"{place.topic}-{place.partition} was deleted, and its records from offset {known[place]} on are lost"
                for place in gone
            )
            + tuple(
                f"{place.topic}-{place.partition} was read up to offset {held[place]} and now ends at {end}: it was"
                " deleted and created again"
                for place, end in behind.items()
            )
        )
        self._gone = (self._gone | set(gone)) - new
        # Nothing of these was read, wherever they end now.
        firsts: dict[TopicPartition, int] = self._kafka.offsets(EARLIEST, new)
        for place, first in firsts.items():
            logger.warning("%s-%d was created again; reading from its first offset, %d", *place, first)
        self._holdings.moved(behind | firsts)
        self._commit()
        return ends

    @property
    def _most_ms(self) -> int:
        return int(self._member.settings.get("max.poll.interval.ms", DEFAULT_MAX_POLL_INTERVAL_MS))

    def _note_the_time(self) -> None:
        """Warn once if the time between two micro-batches gets close to the poll timeout."""
        if self._asked_at is None or self._warned:
            return
        passed_ms = (monotonic() - self._asked_at) * 1000
        if passed_ms > self._most_ms / 2:
            self._warned = True
            logger.warning(
                "%d ms passed between two micro-batches of group %s, which evicts members after %d ms: raise"
                " kafka.max.poll.interval.ms, shorten the trigger interval, or set maxOffsetsPerTrigger",
                passed_ms,
                self._member.group,
                self._most_ms,
            )

    def _leave_when_stopped(self) -> None:
        """Leave the group when Spark ends this process, by SIGTERM, because the query was stopped or failed.

        A thread waits for that, since the main thread may be in a call of librdkafka or in the middle of a join.
        """
        if FOLDERS in os.environ and threading.current_thread() is threading.main_thread():
            self._leaving = threading.Lock()
            woken, wakes = socket.socketpair()
            wakes.setblocking(False)
            signal.signal(signal.SIGTERM, _left_to_the_thread)
            signal.set_wakeup_fd(wakes.fileno())
            threading.Thread(target=self._wait_to_leave, args=(woken, wakes), daemon=True).start()

    def _leave(self) -> None:
        with self._leaving:
            members, self._members = self._members, None
            if members is not None:
                members.close()

    def _wait_to_leave(self, woken: socket.socket, _: socket.socket) -> None:
        while woken.recv(1) != bytes([signal.SIGTERM]):
            pass
        try:
            self._leave()
        finally:
            os._exit(0)  # whatever the main thread does, its results are not used any more

    def _refuse_to_end(self, trigger: str) -> None:
        raise OptionError(
            MODE,
            f"member conflicts with the trigger {trigger}: the group's members share the records, so none can read all"
            " of them and end; use processingTime, or leave out assignment.mode=member",
        )


def _left_to_the_thread(*_: object) -> None:
    """Do nothing: a thread waits for the signal."""
