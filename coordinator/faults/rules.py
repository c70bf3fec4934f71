"""Fault rules: which requests fail, how, and how often. No I/O and no clock.

Rules keep the order in which they were added. A request gets the first one that matches and is not used up, so the same
requests in the same order always meet the same faults. `loadwise.coordinator.faults.subjects` finds a request's group,
members and topics; `loadwise.coordinator.faults.injector` applies the rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Final, TypeAlias, TypedDict, Unpack, get_args, get_type_hints

from loadwise.coordinator.cluster.brokers import FIRST_NODE_ID
from loadwise.coordinator.errors import BadFaultError, NoSuchFaultError
from loadwise.nearest import did_you_mean, near_or_all
from loadwise.protocol.error_codes import ErrorCode

ANY_API: Final = "*"
"""Matches every API."""

FETCH: Final = "Fetch"

MAX_FAULTS: Final = 1000
"""Maximum number of pending faults, and of used-up faults that are kept."""

MAX_NUMBER: Final = 2**31 - 1
"""Maximum of delays in milliseconds and of counts, because Kafka's own numbers end there."""


@dataclass(frozen=True, slots=True)
class AnswerError:
    """Answer with an error code."""

    name: ClassVar = "answer"
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class Delay:
    """Delay the request."""

    name: ClassVar = "delay"
    ms: int


@dataclass(frozen=True, slots=True)
class Drop:
    """Never answer this request, nor any after it on the connection, since answers keep the requests' order."""

    name: ClassVar = "drop"


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the connection."""

    name: ClassVar = "disconnect"


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Change a byte of each fetched record batch, so that its CRC is wrong."""

    name: ClassVar = "corrupt"


Action: TypeAlias = AnswerError | Delay | Drop | Disconnect | Corrupt


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The properties of a request that rules match."""

    api: str
    """Kafka's name of the API."""
    broker: int = FIRST_NODE_ID
    """The broker that received it."""
    client_id: str = ""
    groups: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    """Member ids and group instance ids."""
    topics: frozenset[str] = frozenset()


class Conditions(TypedDict, total=False):
    """Which requests a fault applies to, and how many; an omitted condition matches all."""

    group: str
    """Requests that name this group."""
    member: str
    """Requests that name this member id or group instance id."""
    client_id: str
    """Requests of clients with this client id."""
    topic: str
    """Requests that name this topic."""
    broker: int
    """Requests to the broker with this node id."""
    skip: int
    """Number of requests to let pass first (default: 0)."""
    times: int | None
    """Number of requests to hit (default: 1); None: all, until the faults are cleared."""
    after_handling: bool
    """Whether the request takes effect and only its response is faulty (default: no)."""


CONDITIONS: Final[Mapping[str, tuple[type, ...]]] = {
    name: get_args(hint) or (hint,) for name, hint in get_type_hints(Conditions).items()
}
"""The types of each condition."""
_KINDS: Mapping[type, str] = {str: "text", int: "a whole number", bool: "True or False"}


@dataclass(slots=True, eq=False)
class Fault:
    """One rule, and how often it was used."""

    id: int
    api: str
    action: Action
    group: str | None
    member: str | None
    client_id: str | None
    topic: str | None
    broker: int | None
    after_handling: bool
    skips_left: int
    times_left: int | None
    """None: no limit."""
    hits: int = 0
    """Number of requests that it has hit."""

    def fits(self, subject: Subject) -> bool:
        """Return whether it matches a request."""
        return (
            self.api in {ANY_API, subject.api}
            and self.client_id in {None, subject.client_id}
            and self.broker in {None, subject.broker}
            and (self.group is None or self.group in subject.groups)
            and (self.member is None or self.member in subject.members)
            and (self.topic is None or self.topic in subject.topics)
        )

    @property
    def is_used_up(self) -> bool:
        """Return whether it has no hits left."""
        return self.times_left == 0


class Faults:
    """The pending faults. Every method is thread-safe.

    ::

        coordinator.faults.answer("Heartbeat", error="REBALANCE_IN_PROGRESS", times=3, group="g")
        coordinator.faults.delay("Fetch", ms=500)
        coordinator.faults.drop("OffsetCommit", after_handling=True)  # it is committed, but not answered
        coordinator.faults.disconnect("*", client_id="consumer-1")

    APIs have Kafka's names. Methods that add a fault raise `BadFaultError` if it is not valid, and `TypeError` for an
    argument of another type or name.
    """

    def __init__(self, apis: Collection[str]) -> None:
        self._apis = apis
        self._faults: list[Fault] = []
        self._used_up: deque[Fault] = deque(maxlen=MAX_FAULTS)
        self._ids = count(1)

    def answer(self, api: str, error: ErrorCode | str | int, **conditions: Unpack[Conditions]) -> Fault:
        """Answer with this error, by Kafka's name or number.

        NONE without handling reports a success that did not happen.
        """
        return self._add(api, AnswerError(_error_code(error)), conditions)

    def delay(self, api: str, ms: int, **conditions: Unpack[Conditions]) -> Fault:
        """Delay the request, or only its response, by the coordinator's clock."""
        _check_type("ms", ms, int)
        if not 0 <= ms <= MAX_NUMBER:
            raise BadFaultError(f"the delay is {ms} ms; it must be 0 to {MAX_NUMBER:,}")
        return self._add(api, Delay(ms), conditions)

    def drop(self, api: str, **conditions: Unpack[Conditions]) -> Fault:
        """Never answer. The connection stays open and silent, as with a broker that hangs."""
        return self._add(api, Drop(), conditions)

    def disconnect(self, api: str, **conditions: Unpack[Conditions]) -> Fault:
        """Close the connection of the request."""
        return self._add(api, Disconnect(), conditions)

    def corrupt(self, api: str = FETCH, **conditions: Unpack[Conditions]) -> Fault:
        """Change a byte of the fetched records; responses without records do not count.

        The stored records stay intact, so a second fetch returns them whole.
        """
        if api != FETCH:
            raise BadFaultError(f"only {FETCH} responses have records to corrupt, not those of {api}")
        return self._add(api, Corrupt(), Conditions(**{**conditions, "after_handling": True}))

    @property
    def pending(self) -> Sequence[Fault]:
        """Return the faults that are not used up, in the order in which they are tried."""
        return tuple(self._faults)

    @property
    def has_pending(self) -> bool:
        """Return whether any fault is not used up."""
        return bool(self._faults)

    def get(self, fault_id: int) -> Fault:
        """Return a fault by its id, even if it is used up. Raises `NoSuchFaultError`."""
        for fault in (*self._faults, *self._used_up):
            if fault.id == fault_id:
                return fault
        raise NoSuchFaultError(f"there is no fault {fault_id}")

    def remove(self, fault: Fault) -> None:
        """Remove a fault; a used-up one is ignored."""
        if fault in self._faults:
            self._faults.remove(fault)

    def clear(self) -> None:
        """Remove all faults."""
        self._faults.clear()

    def take(self, subject: Subject, *, has_records: bool = False) -> Fault | None:
        """Return the fault for this request and count it as one hit; None if none matches.

        ``has_records`` means that it is a response with records now. It can be corrupted, and gets no other fault.
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
        _check_type("api", api, str)
        _check_conditions(conditions)
        if api != ANY_API and api not in self._apis:
            near = did_you_mean(api, self._apis)
            raise BadFaultError(f"no API {api!r} is served{near}; choose from {', '.join(sorted(self._apis))}")
        times, skip = conditions.get("times", 1), conditions.get("skip", 0)
        if (times is not None and not 1 <= times <= MAX_NUMBER) or not 0 <= skip <= MAX_NUMBER:
            most = f"up to {MAX_NUMBER:,}"
            raise BadFaultError(f"times={times}, skip={skip}: times must be 1 {most}, or None, and skip 0 {most}")
        if len(self._faults) >= MAX_FAULTS:
            raise BadFaultError(f"there are {MAX_FAULTS:,} pending faults, which is the limit: clear them")
        fault = Fault(
            id=next(self._ids),
            api=api,
            action=action,
            group=conditions.get("group"),
            member=conditions.get("member"),
            client_id=conditions.get("client_id"),
            topic=conditions.get("topic"),
            broker=conditions.get("broker"),
            after_handling=conditions.get("after_handling", False),
            skips_left=skip,
            times_left=times,
        )
        self._faults.append(fault)
        return fault


def _check_conditions(conditions: Mapping[str, object]) -> None:
    """Raise `TypeError` for a condition that does not exist, or has the wrong type."""
    for name, value in conditions.items():
        if name not in CONDITIONS:
            raise TypeError(f"faults have no condition {name!r}{near_or_all(name, CONDITIONS)}")
        if value is not None or name in {"skip", "after_handling"}:
            _check_type(name, value, CONDITIONS[name][0])


def _check_type(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{name} is {value!r}; it must be {_KINDS[kind]}")


def _error_code(error: ErrorCode | str | int) -> ErrorCode:
    try:
        return ErrorCode[error] if isinstance(error, str) else ErrorCode(error)
    except (KeyError, ValueError):
        near = did_you_mean(error, ErrorCode.__members__) if isinstance(error, str) else ""
        raise BadFaultError(f"{error!r} is not the name or number of a Kafka error{near}") from None
