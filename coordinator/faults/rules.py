"""Faults on demand: which request is to go wrong, how, and how often. Rules that a test writes; no I/O and no clock.

The rules stand in the order in which they were made. A request takes the first one that fits it and has some of its
times left, so the same requests in the same order always meet the same faults.
`loadwise.coordinator.faults.subjects` finds out whom a request is about, `loadwise.coordinator.faults.injector` does
what a rule tells.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Final, TypeAlias, TypedDict, Unpack

from loadwise.coordinator.errors import BadFaultError, NoSuchFaultError
from loadwise.protocol.error_codes import ErrorCode

ANY_API: Final = "*"
"""In place of an API's name: whatever is asked."""

FETCH: Final = "Fetch"

MAX_FAULTS: Final = 1000
"""Most faults that may be to come, and most used-up ones that are remembered."""

MAX_NUMBER: Final = 2**31 - 1
"""Longest delay in milliseconds, and most requests that a fault lets pass or hits: Kafka's own numbers end there."""


@dataclass(frozen=True, slots=True)
class AnswerError:
    """Answer with an error code."""

    name: ClassVar = "answer"
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class Delay:
    """Let it take longer."""

    name: ClassVar = "delay"
    ms: int


@dataclass(frozen=True, slots=True)
class Drop:
    """Never answer, nor what comes behind on the same connection: answers keep the order of the requests."""

    name: ClassVar = "drop"


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the connection."""

    name: ClassVar = "disconnect"


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Change a byte of each record batch that a fetch is answered with, so that its CRC is wrong."""

    name: ClassVar = "corrupt"


Action: TypeAlias = AnswerError | Delay | Drop | Disconnect | Corrupt


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a rule can ask about a request."""

    api: str
    """Kafka's name of the API."""
    client_id: str = ""
    groups: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    """Member ids and group instance ids."""
    topics: frozenset[str] = frozenset()


class Conditions(TypedDict, total=False):
    """Which requests a fault is for, and how many of them; what is left out does not matter."""

    group: str
    """Requests that name this group."""
    member: str
    """Requests that name this member id or group instance id."""
    client_id: str
    """Requests of clients that call themselves this."""
    topic: str
    """Requests that name this topic."""
    skip: int
    """Let so many pass first (default: 0)."""
    times: int | None
    """How many are hit (default: 1); None: all, until the faults are cleared."""
    after_handling: bool
    """Whether the request takes effect first, so that only its answer suffers (default: no)."""


@dataclass(slots=True, eq=False)
class Fault:
    """One rule, and how far it has been used up."""

    id: int
    api: str
    action: Action
    group: str | None
    member: str | None
    client_id: str | None
    topic: str | None
    after_handling: bool
    skips_left: int
    times_left: int | None
    """None: without end."""
    hits: int = 0
    """How many requests it has hit."""

    def fits(self, subject: Subject) -> bool:
        """Whether it is for such a request."""
        return (
            self.api in {ANY_API, subject.api}
            and self.client_id in {None, subject.client_id}
            and (self.group is None or self.group in subject.groups)
            and (self.member is None or self.member in subject.members)
            and (self.topic is None or self.topic in subject.topics)
        )

    @property
    def is_used_up(self) -> bool:
        """Whether it will hit no more."""
        return self.times_left == 0


class Faults:
    """The faults that are to come. Every method may be called from any thread: each changes the list in one step.

    ::

        coordinator.faults.answer("Heartbeat", error="REBALANCE_IN_PROGRESS", times=3, group="g")
        coordinator.faults.delay("Fetch", ms=500)
        coordinator.faults.drop("OffsetCommit", after_handling=True)  # it is committed, and nobody is told
        coordinator.faults.disconnect("*", client_id="consumer-1")

    An API goes by Kafka's name for it. All methods that make a fault raise `BadFaultError` for what cannot be.
    """

    def __init__(self, apis: Collection[str]) -> None:
        self._apis = apis
        self._faults: list[Fault] = []
        self._used_up: deque[Fault] = deque(maxlen=MAX_FAULTS)
        self._ids = count(1)

    def answer(self, api: str, error: ErrorCode | str | int, **conditions: Unpack[Conditions]) -> Fault:
        """Answer with this error, by Kafka's name or number; NONE without handling is an answer that lies."""
        return self._add(api, AnswerError(_error_code(error)), conditions)

    def delay(self, api: str, ms: int, **conditions: Unpack[Conditions]) -> Fault:
        """Handle the request so much later by the coordinator's clock, or only answer it later."""
        if not 0 <= ms <= MAX_NUMBER:
            raise BadFaultError(f"a delay of {ms} ms; it takes 0 to {MAX_NUMBER:,}")
        return self._add(api, Delay(ms), conditions)

    def drop(self, api: str, **conditions: Unpack[Conditions]) -> Fault:
        """Never answer. The connection stays open and silent, as with a broker that hangs."""
        return self._add(api, Drop(), conditions)

    def disconnect(self, api: str, **conditions: Unpack[Conditions]) -> Fault:
        """Close the connection that the request came on."""
        return self._add(api, Disconnect(), conditions)

    def corrupt(self, api: str = FETCH, **conditions: Unpack[Conditions]) -> Fault:
        """Change a byte of the records that a fetch is answered with; one without records does not count.

        What the coordinator keeps is not changed: fetched again, the records are whole.
        """
        if api != FETCH:
            raise BadFaultError(f"only answers to {FETCH} have records that can be corrupted, not those to {api}")
        return self._add(api, Corrupt(), Conditions(**{**conditions, "after_handling": True}))

    @property
    def pending(self) -> Sequence[Fault]:
        """The faults that are not used up, in the order in which they are tried."""
        return tuple(self._faults)

    @property
    def has_pending(self) -> bool:
        """Whether there are any that are not used up."""
        return bool(self._faults)

    def get(self, fault_id: int) -> Fault:
        """A fault by its id, even if it is used up. Raises `NoSuchFaultError`."""
        for fault in (*self._faults, *self._used_up):
            if fault.id == fault_id:
                return fault
        raise NoSuchFaultError(f"there is no fault {fault_id}")

    def remove(self, fault: Fault) -> None:
        """Take one back; one that is used up is passed over."""
        if fault in self._faults:
            self._faults.remove(fault)

    def clear(self) -> None:
        """Take all back."""
        self._faults.clear()

    def take(self, subject: Subject, *, has_records: bool = False) -> Fault | None:
        """The fault that this request meets, which is used up by one; None if it meets none.

        ``has_records``: it is an answer with records now, which can be corrupted, and meets no other fault any more.
        """
        for fault in self._faults:
            if not fault.fits(subject) or isinstance(fault.action, Corrupt) is not has_records:
                continue
            if fault.skips_left:
                fault.skips_left -= 1
                continue
            fault.hits += 1
            if fault.times_left is not None:
                fault.times_left -= 1
                if fault.is_used_up:
                    self.remove(fault)
                    self._used_up.append(fault)
            return fault
        return None

    def _add(self, api: str, action: Action, conditions: Conditions) -> Fault:
        if api != ANY_API and api not in self._apis:
            raise BadFaultError(f"no API {api!r} is served here; there are {', '.join(sorted(self._apis))}")
        times, skip = conditions.get("times", 1), conditions.get("skip", 0)
        if (times is not None and not 1 <= times <= MAX_NUMBER) or not 0 <= skip <= MAX_NUMBER:
            most = f"up to {MAX_NUMBER:,}"
            raise BadFaultError(f"times={times}, skip={skip}: times takes 1 {most}, or None, and skip 0 {most}")
        if len(self._faults) >= MAX_FAULTS:
            raise BadFaultError(f"there are {MAX_FAULTS:,} faults to come already, which is the limit: clear them")
        fault = Fault(
            id=next(self._ids),
            api=api,
            action=action,
            group=conditions.get("group"),
            member=conditions.get("member"),
            client_id=conditions.get("client_id"),
            topic=conditions.get("topic"),
            after_handling=conditions.get("after_handling", False),
            skips_left=skip,
            times_left=times,
        )
        self._faults.append(fault)
        return fault


def _error_code(error: ErrorCode | str | int) -> ErrorCode:
    try:
        return ErrorCode[error] if isinstance(error, str) else ErrorCode(error)
    except (KeyError, ValueError):
        raise BadFaultError(f"{error!r} is no error of Kafka's, by name or number") from None
