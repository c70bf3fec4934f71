"""kafka-python: read a group's lag on a separate thread with a separate admin client.

Calling the consumer itself from an assignor raises. Another client would block the thread that sends heartbeats.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from itertools import starmap
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from loadwise.assignor.clients.kafka_python.logged_once import log_nothing
from loadwise.assignor.load.lag import BEGINNINGS_S, HISTORY_S, LagLoad, PartitionOffsets, ends_before, first_since
from loadwise.assignor.load.switch import SwitchReader
from loadwise.protocol.live_switch import switch_group

log = logging.getLogger(__name__)

_TIMEOUT_MS = 5_000


class KafkaPythonLag(LagLoad):
    """A group's lag, read every ``interval_s`` between `start` and `close`; an unreachable broker is tolerated.

    ``config`` takes kafka-python's keyword arguments. It uses those of ``KafkaAdminClient``, and ``auto_offset_reset``
    and ``isolation_level`` of the group's consumers.
    """

    def __init__(self, *topics: str, group_id: str, interval_s: float = 5.0, **config: Any) -> None:
        from_where = config.get("auto_offset_reset", "latest")
        super().__init__(topics, auto_offset_reset=from_where, interval_s=interval_s, group_id=group_id)
        self.failures = 0
        """The number of failed readings."""
        self._isolation_level = config.get("isolation_level", "read_uncommitted")
        known = {key: value for key, value in config.items() if key in KafkaAdminClient.DEFAULT_CONFIG}
        # A longer reading is of no use, and `close` waits for the current one.
        self._config = {**known, "request_timeout_ms": _TIMEOUT_MS, "bootstrap_timeout_ms": _TIMEOUT_MS}
        self._admin: Admin | None = None
        self._began: Mapping[tuple[str, int], int] = {}
        self._began_at = -math.inf
        self._leaders: Mapping[TopicPartition, int] = {}  # empty: must be requested
        self._leaders_for = 0  # the value of `told` at that time
        self._changed = threading.Condition()
        self._asked = 0  # requested readings: the first, one for each change of the topics, and others
        self._tried = 0  # the newest of them that succeeded or failed
        self._tried_at = -math.inf
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"loadwise-lag-{group_id}", daemon=True)

    def start(self, *, at_once: bool = True) -> None:
        """Start reading, ``at_once`` or on request."""
        self._asked = max(self._asked, 1) if at_once else self._asked
        self._thread.start()

    def refresh(self) -> None:
        """Read at once; `wait` waits for that reading."""
        with self._changed:
            self._asked += 1
            self._changed.notify_all()

    def set_interval(self, interval_s: float) -> None:
        """Set the time between two readings; infinite: read only on request."""
        with self._changed:
            super().set_interval(interval_s)
            self._changed.notify_all()

    @property
    def pending(self) -> bool:
        """Whether a requested reading is still to come."""
        return self._tried < self._asked

    def wait(self, timeout_s: float) -> bool:
        """Wait until everything that is watched now was read or failed; return whether there is a reading."""
        with self._changed:
            self._changed.wait_for(lambda: self._tried >= self._asked, timeout_s)
        return self._read is not None

    def stop(self) -> None:
        """Stop reading; the thread ends after the current reading."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def close(self) -> None:
        """Stop reading and wait for the thread to end, at most for the length of a reading."""
        self.stop()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        failing = False
        while self._waits():
            asked = self._asked
            try:
                self._read_once()
                failing = False
            except Exception as error:  # noqa: BLE001 (clients raise all sorts, and none of them may end the reading)
                self.failures += 1
                if not failing:
                    log.warning("The lag of group %s cannot be read (%r); retrying", self._group_id, error)
                failing = True
                self._disconnect()
            if self.interval_s == math.inf:
                self._disconnect()  # no reading is due for long: keep no connection open
            with self._changed:
                self._tried = asked
                self._tried_at = time.monotonic()
                self._changed.notify_all()
        self._disconnect()

    def _waits(self) -> bool:
        """Wait until the next reading is due; return False if there will be none."""
        with self._changed:
            while not self._closing and self._tried >= self._asked:
                # Before the first reading the sum would be NaN, and a wait for that ends at once.
                never = self.interval_s == math.inf
                left_s = math.inf if never else self._tried_at + self.interval_s - time.monotonic()
                if left_s <= 0:
                    break
                self._changed.wait(min(left_s, threading.TIMEOUT_MAX))
            return not self._closing

    def _read_once(self) -> None:
        told = self.told  # read before the topics, because another thread changes it after them
        offsets = self._offsets(self._topics_to_read(), told)
        if offsets and self.lacks_history and self.prior_listener is not None:
            try:
                now_ms = round(time.time() * 1000)
                wanted = dict.fromkeys(starmap(TopicPartition, offsets), now_ms - round(HISTORY_S * 1000))
                found = self._connected().list_partition_offsets(wanted, isolation_level=self._isolation_level)
                self.prior_listener(ends_before(first_since(found), offsets, now_ms))
            except Exception as error:  # noqa: BLE001 (it is only a first guess, which the next readings replace)
                log.debug("Arrivals of the last minute cannot be read: %r", error)
        if self.switch is not None and self.switch.due(time.monotonic()):
            self._read_switch(self.switch)
        self.update(offsets)

    def _read_switch(self, switch: SwitchReader) -> None:
        try:
            admin, group = self._connected(), switch_group(self._group_id)
            committed = admin.list_group_offsets(group)[group]
            notes = {partition: (at.offset, at.metadata or "") for partition, at in committed.items()}
            renewed = switch.read(notes, round(time.time() * 1000))
            if renewed is not None:
                partition, offset, note = renewed
                admin.alter_group_offsets(group, {partition: OffsetAndMetadata(offset, note.encode(), None)})
        except Exception as error:  # noqa: BLE001 (clients raise all sorts, and the reading itself was good)
            switch.failed(error)

    def _topics_to_read(self) -> Collection[str]:
        if self.pattern is None:
            return self.topics
        return self.topics.union(filter(self.pattern.match, self._connected().list_topics()))

    def _connected(self) -> Admin:
        if self._admin is None:
            made = self._config.get("kafka_client", Admin.DEFAULT_CONFIG["kafka_client"])
            self._admin = Admin(**{**self._config, "kafka_client": partial(_quiet, made)})
        return self._admin

    def _offsets(self, topics: Collection[str], told: int) -> dict[tuple[str, int], PartitionOffsets]:
        if not topics:
            return {}
        now = time.monotonic()
        if now - self._began_at >= BEGINNINGS_S:
            self._began, self._leaders, self._began_at = {}, {}, now
        if self.pattern is not None or self._leaders_for != told:
            self._leaders, self._leaders_for = {}, told
        if self._leaders:
            try:
                return self._offsets_by(self._leaders)
            except KafkaError as error:  # topics may be deleted, or have other leaders
                log.debug("Partitions and leaders are requested again: %r", error)
        described = self._connected().describe_topics(sorted(topics))
        leaders = leaders_of(described)
        found = sum(len(topic["partitions"]) or 1 for topic in described)  # a missing topic has no partitions
        self._leaders = leaders if len(leaders) == found else {}
        return self._offsets_by(leaders)

    def _offsets_by(self, leaders: Mapping[TopicPartition, int]) -> dict[tuple[str, int], PartitionOffsets]:
        offsets = read_offsets(
            self._connected(), self._group_id, leaders, isolation_level=self._isolation_level, beginning=self._began
        )
        self._began = {partition: where.beginning for partition, where in offsets.items()}
        return offsets

    def _disconnect(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin, self._leaders = None, {}


def _quiet(make: Callable[..., Any], **options: Any) -> Any:
    """Create a client of kafka-python that logs nothing, because the lag reader logs why it failed."""
    client = make(**options)
    net = client._manager._net
    net.start()  # before the first attempt to connect; starting it again has no effect
    log_nothing(net._io_thread)
    return client


class Admin(KafkaAdminClient):
    """An admin client that leaks no thread if no broker is reachable, and accepts known partition leaders.

    kafka-python's requests the metadata of all topics before every ListOffsets: a fifth of the cost of a reading.
    """

    def __init__(self, **config: Any) -> None:
        self.leaders: Mapping[TopicPartition, int] = {}
        """The partition leaders for the next request; used once, because the client looks them up if one moved."""
        try:
            super().__init__(**config)
        except BaseException:
            if hasattr(self, "_net"):
                self._client.close()
                self._net.stop()
            raise

    async def _async_get_leader_for_partitions(self, partitions: Collection[TopicPartition]) -> Any:
        known, self.leaders = self.leaders, {}
        if not known.keys() >= set(partitions):
            return await super()._async_get_leader_for_partitions(partitions)
        led: dict[int, set[TopicPartition]] = {}
        for partition in partitions:
            led.setdefault(known[partition], set()).add(partition)
        return led


def leaders_of(described: Iterable[Mapping[str, Any]]) -> dict[TopicPartition, int]:
    """Return the leader of each partition that has one, from the answer of ``describe_topics``."""
    return {
        TopicPartition(topic["name"], partition["partition_index"]): partition["leader_id"]
        for topic in described
        for partition in topic["partitions"]
        if partition["leader_id"] >= 0
    }


def read_offsets(
    admin: Admin,
    group_id: str,
    leaders: Mapping[TopicPartition, int],
    *,
    isolation_level: str = "read_uncommitted",
    beginning: Mapping[tuple[str, int], int] | None = None,
) -> dict[tuple[str, int], PartitionOffsets]:
    """Read a group's offsets, by partition leader. Raises kafka-python's errors.

    Begin offsets in ``beginning`` are used and not requested again.
    """
    if not leaders:
        return {}
    committed = admin.list_group_offsets(group_id)[group_id]

    def offsets(of: Collection[TopicPartition], spec: OffsetSpec) -> Any:
        admin.leaders = leaders
        return admin.list_partition_offsets(dict.fromkeys(of, spec), isolation_level=isolation_level)

    known = beginning or {}
    asked = [partition for partition in leaders if partition not in known]
    found = offsets(asked, OffsetSpec.EARLIEST) if asked else {}
    end = offsets(leaders, OffsetSpec.LATEST)
    return {
        partition: PartitionOffsets(
            beginning=found[partition].offset if partition in found else known[partition],
            end=end[partition].offset,
            committed=committed[partition].offset if partition in committed else None,
            metadata=(committed[partition].metadata or "") if partition in committed else "",
        )
        for partition in leaders
    }
