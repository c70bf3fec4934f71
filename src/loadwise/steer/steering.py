"""Steers a group until it is stopped: reads it, keeps the steering members alive, and sends plans."""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Callable
from threading import Event
from uuid import UUID

from loadwise.assignor.group_history import GroupHistory
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.settings import LiveSettings
from loadwise.counted import counted
from loadwise.protocol.errors import UnencodableError
from loadwise.protocol.steering_note import newest_parts
from loadwise.running_group.admin import GroupAdmin
from loadwise.running_group.errors import NoMembersError, UnreadableGroupError
from loadwise.running_group.members import GroupReading, RunningGroup
from loadwise.running_group.reading import read
from loadwise.steer.budget import Budget
from loadwise.steer.guests import ASSIGNOR, Guests, process_of
from loadwise.steer.plans import Planner

from kafka.errors import KafkaError  # isort: skip

log = logging.getLogger("loadwise.steer")

_EVERY_S = 2.0
_MOVING_S = 0.5  # how long members need for a plan is part of the price of the next one
_HEARTBEAT_S = 3.0
_SHARE = 10  # a reading may take this part of the time: the group may have a million partitions
_STABLE = "Stable"


class Steering:
    """One process of those that may steer a group: the one that began first does, the others carry its plan.

    ``votes``: how many steering members join at least, for groups in which members name another assignor.
    ``on_reading`` is called with each reading of the group in its stable state, and the decision after it.
    ``from_beginning``: whether members read a partition without a commit from its beginning (``auto.offset.reset``).
    """

    def __init__(
        self,
        admin: GroupAdmin,
        group_id: str,
        *,
        settings: LiveSettings | None = None,
        from_beginning: bool = True,
        votes: int = 1,
        on_reading: Callable[[GroupReading, Decision | None], None] | None = None,
    ) -> None:
        self._on_reading = on_reading
        self._votes = votes
        self._admin, self.group_id = admin, group_id
        self._settings = settings or LiveSettings()
        self._planner = Planner(self._settings, from_beginning=from_beginning)
        self.leads = False
        """Whether this process steers; the others stand by."""
        self._guests = Guests(f"loadwise-steer-{time.time_ns() // 1_000_000:013d}-{secrets.token_hex(4)}")
        self._sequence = 0
        self._asks = False  # whether the broker must assign again, once it has heard the whole plan
        self._said = ""
        self._newest: tuple[float, Decision] | None = None
        self.plans = 0
        """The number of plans sent."""
        self.moved_share = 0.0
        """The total share of the demand that these have moved."""
        self.budget = Budget()
        """What this process has written."""

    def explain(self) -> Decision | None:
        """Return the newest decision about the group's load; None before the first."""
        return None if self._newest is None else self._newest[1]

    @property
    def reading_age_s(self) -> float:
        """Seconds since the offsets of the newest decision were read; infinite before the first."""
        return math.inf if self._newest is None else time.monotonic() - self._newest[0]

    def history(self) -> GroupHistory:
        """Return the newest readings and decisions; its ``save(path)`` writes a file for ``loadwise replay``."""
        return self._planner.history()

    def run(self, stop: Event) -> None:
        """Steer until ``stop`` is set, then leave. Raises `UnreadableGroupError` if the group cannot be steered."""
        try:
            wait_s = due_s = 0.0
            while not stop.wait(wait_s):
                if time.monotonic() < due_s:
                    self._beat()
                else:
                    due_s = time.monotonic() + self.step()
                wait_s = min(max(due_s - time.monotonic(), 0.0), _HEARTBEAT_S)
        finally:
            self.leave()

    def step(self) -> float:
        """Read the group once and act; return the seconds until the next step."""
        began = time.monotonic()
        wait_s = self._step()
        return max(wait_s, _SHARE * (time.monotonic() - began))

    def _step(self) -> float:
        try:
            reading = read(self._admin, self.group_id)
        except NoMembersError as error:
            return self._wait(str(error))
        except UnreadableGroupError as error:  # brokers restart: the plan outlives that
            self._say(str(error))
            return _EVERY_S
        if reading.group.is_classic:
            return self._wait(f"the group {self.group_id} is a classic one; set group.protocol=consumer in its members")
        self._guests.grow(self._votes)
        self.leads = self._guests.process <= min(map(process_of, reading.group.steering), default=self._guests.process)
        self._say("Steering" if self.leads else "Standing by: another process steers")
        if not self.leads:
            self._copy(reading.group)
        if not self._beat() or reading.group.state != _STABLE:
            return _MOVING_S
        if reading.group.protocol != ASSIGNOR and any(each in self._guests for each in reading.group.steering):
            self._say(outvoted(reading.group))
            return _EVERY_S
        decision = self._planner.read(reading)
        if decision is not None:
            log.debug("%s", decision)
            self._newest = reading.at_s, decision
        if self._on_reading is not None:
            self._on_reading(reading, decision)
        if decision is None or not decision.ask or not self.leads:
            return _EVERY_S
        log.info("%s", decision)
        if self._settings.dry_run:
            return _EVERY_S
        self._send(reading, decision)
        return _MOVING_S

    def leave(self) -> None:
        """Leave the group: its members keep their partitions."""
        guests, self._guests.all, self.leads = self._guests.all, [], False
        for guest in guests:
            try:
                self._admin.heartbeat(self.group_id, **guest.leaving())
            except KafkaError as error:
                log.warning("A steering member stays in %s until its session ends: %s", self.group_id, error)

    def _say(self, line: str) -> None:
        if line != self._said:
            log.info("%s: %s", self.group_id, line)
        self._said = line

    def _wait(self, reason: str) -> float:
        self.leave()
        self._say(f"Waiting: {reason}")
        return _EVERY_S

    def _copy(self, group: RunningGroup) -> None:
        """Carry the newest plan of another process: it outlives that process."""
        others = sorted((member, rack) for member, rack in group.steering.items() if member not in self._guests)
        sequence, parts = newest_parts(rack for _, rack in others)
        if sequence > self._sequence:
            self._sequence = sequence
            self._guests.carry(parts)

    def _send(self, reading: GroupReading, decision: Decision) -> None:
        try:
            described = self._admin.describe_topics(sorted(reading.partitions))
        except KafkaError as error:
            self._say(f"The topics cannot be described; retrying: {error}")
            return
        plan = self._planner.plan(reading, {topic["name"]: UUID(topic["topic_id"]).bytes for topic in described})
        self._sequence = max(self._sequence + 1, time.time_ns() // 1_000_000)
        try:
            parts = plan.encode(self._sequence)
        except UnencodableError as error:
            raise UnreadableGroupError(f"the group {self.group_id} is too large to be steered: {error}") from error
        processes = {self._guests.process, *map(process_of, reading.group.steering)}
        size = sum(map(len, parts))
        refused = self.budget.refusal(size, len(processes), time.monotonic())
        if refused is not None:
            self._say(f"Waiting: {refused}")
            return
        self._planner.sent(reading)
        self._guests.carry(parts)
        self._asks = True
        self._beat()
        self.plans += 1
        self.moved_share += decision.judgement.moved_share
        log.info("Sent plan %d in %s, %s", self._sequence, counted(len(parts), "part"), counted(size, "byte"))

    def _beat(self) -> bool:
        """Send the heartbeats of all guests; return whether the broker has heard all that they say."""
        self._send_heartbeats()
        if self._asks and self._guests.heard:  # the broker has the whole plan: it may assign by it
            self._guests.all[0].ask()
            self._asks = False
            self._send_heartbeats()
        return self._guests.heard

    def _send_heartbeats(self) -> None:
        for guest in self._guests.all:
            fields = guest.heartbeat()
            self.budget.wrote(len(fields.get("rack_id", "")), time.monotonic())
            try:
                guest.answered(self._admin.heartbeat(self.group_id, **fields))
            except KafkaError as error:
                self._say(f"The heartbeat of a steering member failed, and is repeated: {error}")


def outvoted(group: RunningGroup) -> str:
    """Return why a group's plans are not followed: its members name another assignor."""
    return (
        f"Waiting: the group follows {group.protocol!r}, because {len(group.steering)} or more of its"
        f" {counted(len(group.members), 'member')} name it and {len(group.steering)} ours; remove"
        f" group.remote.assignor from the members, or set it to {ASSIGNOR}; franz-go names one always: outvote it with"
        f" --votes {len(group.members) + 1}"
    )
