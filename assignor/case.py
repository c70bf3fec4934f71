"""A case: a group, its topics and a strategy as one JSON object, and its assignment.

Programs that are not consumers ask for an assignment in this form: ``loadwise assign``, a what-if, a comparison of
assignors. In the object, ``?`` marks optional fields::

    {"id"?: any,                                   echoed
     "strategy": "weighted",                       a name in `loadwise.assignor.strategy.strategies()`
     "topics": {"t": {"partitions": 3, "racks"?: [["a", "b"], "c", null]}},
     "weights"?: {"t": [12.5, null, 0]},           the load of each partition; null: unknown
     "lag"?: {"t": [900, 0, null]}, "rate"?: {"t": [3.5, 0, 1]},      or these: records, records/s
     "horizon_s"?: 60,                             to drain the lag in; without: the least that the capacities allow
     "resources"?: {"bytes_in": {"t": [1, 2, 3]}}, "resource_weights"?: {"bytes_in": 0.6},     or several of them
     "options"?: {"epsilon": 0.05},                the algorithm's parameters
     "members": [{"id": "m1", "topics": ["t"], "group_instance_id"?: "i1", "rack"?: "a", "capacity"?: 2.0,
                  "owned"?: [["t", 0]], "generation"?: 5}]}

Members of old clients (``subscription_version`` below 3) are read as a leader would see them: without a rack below 3,
and without the partitions that a cooperative member owns below 1. ``user_data_version`` 0 is sticky user data without
a generation. ``user_data_hex`` is a member's raw user data. It replaces ``owned`` and ``generation`` for strategies
that send them in user data. ``subscription_generation`` is the generation in the subscription if it differs. Any other
field is an error.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, NoReturn

import numpy as np

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.errors import BadCaseError
from loadwise.assignor.load.drain import drain_weight
from loadwise.assignor.load.mix import mix
from loadwise.assignor.load.source import TopicLoads
from loadwise.assignor.model import LARGEST, NO_GENERATION, Assignment, Assignor, Floats, GroupSnapshot, Member
from loadwise.assignor.staging import stage
from loadwise.assignor.strategy import Strategy, strategy
from loadwise.assignor.subscription import read_user_data
from loadwise.json_fields import MISSING, JsonFields
from loadwise.protocol.errors import ProtocolError
from loadwise.protocol.user_data import StickyUserData

_CASE = (
    *("id", "strategy", "topics", "members", "options", "prefer_rack_aware"),
    *("weights", "lag", "rate", "horizon_s", "resources", "resource_weights"),
)
_TOPIC = ("partitions", "racks")
_MEMBER = (
    *("id", "topics", "group_instance_id", "rack", "capacity", "owned", "generation"),
    *("subscription_version", "subscription_generation", "user_data_version", "user_data_hex"),
)
_read = JsonFields(BadCaseError, largest=LARGEST)

MOST_PARTITIONS = 10_000_000
"""Limit for all topics together: ten times the largest supported group, so that a typo does not exhaust memory."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A parsed and validated case. Build it with `Case.parse`."""

    id: Any
    """The id from the JSON object; None if it has none."""
    strategy: Strategy
    assignor: Assignor
    """The strategy's algorithm with the case's parameters."""
    members: tuple[Member, ...]
    partitions: Mapping[str, int]
    racks: Mapping[str, Sequence[Sequence[str]]]
    load: TopicLoads | None

    @classmethod
    def parse(cls, given: object) -> Case:
        """Parse a value returned by ``json.loads``. Raises `BadCaseError` or `UnknownAssignorError`."""
        case = _read.known(_read.an_object(given, "the case"), _CASE)
        if case.get("prefer_rack_aware"):
            raise BadCaseError("prefer_rack_aware is only for Kafka's own tests; leave it out")
        chosen = strategy(_read.text(case.get("strategy", MISSING), "strategy"))
        topics = {
            name: _read.known(_read.an_object(spec, f"topics.{name}"), _TOPIC, f"topics.{name}.")
            for name, spec in _read.an_object(case.get("topics", MISSING), "topics").items()
        }
        partitions = {
            name: _read.whole(spec.get("partitions", MISSING), f"topics.{name}.partitions", least=0)
            for name, spec in topics.items()
        }
        total = sum(partitions.values())
        if total > MOST_PARTITIONS:
            raise BadCaseError(f"topics have {total:,} partitions in total; at most {MOST_PARTITIONS:,} are allowed")
        members: list[Member] = []
        for index, member in enumerate(_read.a_list(case.get("members", MISSING), "members")):
            where = f"members[{index}]"
            members.append(
                _member(_read.an_object(member, where), where, chosen, members[-1].topics if members else None)
            )
        return cls(
            id=case.get("id"),
            strategy=chosen,
            assignor=_with_options(algorithm(chosen.algorithm), _read.an_object(case.get("options", {}), "options")),
            members=tuple(members),
            partitions=partitions,
            racks={
                name: _racks(spec["racks"], f"topics.{name}.racks")
                for name, spec in topics.items()
                if spec.get("racks") is not None
            },
            load=_load(case, partitions, sum(member.capacity for member in members)),
        )

    def answer(self) -> Assignment:
        """Return the assignment that goes on the wire: the target, staged if the strategy is cooperative."""
        group = GroupSnapshot.of(self.members, self.partitions, load=self.load, racks=self.racks)
        target = self.assignor.assign(group)
        return stage(target) if self.strategy.cooperative else target


def load_json(text: str | bytes) -> object:
    """Parse JSON like ``json.loads``, but raise `BadCaseError` for NaN and infinity, which JSON does not allow."""
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise BadCaseError(f"{name} is not a JSON number; write null for an unknown value")


def _member(member: dict[str, Any], where: str, chosen: Strategy, before: Sequence[str] | None) -> Member:
    """Read a member. ``before`` is the topic list of the previous one: equal lists become one, checked once."""
    _read.known(member, _MEMBER, f"{where}.")
    name = _read.text(member.get("id", MISSING), f"{where}.id")
    version = _read.whole(member.get("subscription_version", 3), f"{where}.subscription_version", least=0)
    hidden = chosen.cooperative and version < 1
    given = member.get("topics", MISSING)
    topics = before if before is not None and given == before else _read.texts(given, f"{where}.topics")
    owned: Mapping[str, Sequence[int]] = {} if hidden else _owned(member.get("owned"), f"{where}.owned")
    generation = _generation(member, "generation", where)
    if member.get("user_data_version") == 0:
        generation = NO_GENERATION
    capacity = _read.number(member.get("capacity", 1.0), f"{where}.capacity")
    if member.get("user_data_hex") is not None:
        try:
            user_data = read_user_data(chosen, _bytes(member["user_data_hex"], f"{where}.user_data_hex"))
        except ProtocolError as error:
            raise BadCaseError(f"{where}.user_data_hex is not user data of {chosen.name}: {error}") from error
        if user_data is not None:
            generation = user_data.generation
            capacity = capacity if user_data.terms is None else user_data.terms.capacity
        if isinstance(user_data, StickyUserData):
            owned = {topic: partitions for topic, partitions in user_data.owned.items() if topic in topics}
    in_subscription = _generation(member, "subscription_generation", where)
    if chosen.cooperative and version >= 2 and in_subscription != NO_GENERATION:
        generation = in_subscription
    rack = member.get("rack")
    instance_id = member.get("group_instance_id")
    return Member(
        id=name,
        topics=topics,
        owned=owned,
        generation=generation,
        instance_id=None if instance_id is None else _read.text(instance_id, f"{where}.group_instance_id"),
        rack=None if rack is None or version < 3 else _read.text(rack, f"{where}.rack"),
        capacity=capacity,
    )


def _generation(member: dict[str, Any], name: str, where: str) -> int:
    given = member.get(name)
    return NO_GENERATION if given is None else _read.whole(given, f"{where}.{name}", least=NO_GENERATION)


def _owned(given: object, where: str) -> dict[str, list[int]]:
    owned: dict[str, list[int]] = {}
    if given is None:
        return owned
    for index, pair in enumerate(_read.a_list(given, where)):
        if not isinstance(pair, list) or len(pair) != 2:
            _read.refuse(pair, f"{where}[{index}]", "[topic, partition]")
        topic = _read.text(pair[0], f"{where}[{index}][0]")
        owned.setdefault(topic, []).append(_read.whole(pair[1], f"{where}[{index}][1]"))
    return owned


def _racks(given: object, where: str) -> list[list[str]]:
    racks: list[list[str]] = []
    for index, replicas in enumerate(_read.a_list(given, where)):
        if replicas is None:
            racks.append([])
        elif isinstance(replicas, str):
            racks.append([replicas])
        else:
            racks.append(
                _read.texts([rack for rack in _read.a_list(replicas, f"{where}[{index}]") if rack is not None], where)
            )
    return racks


def _with_options(assignor: Assignor, options: dict[str, Any]) -> Assignor:
    if not options:
        return assignor
    assert dataclasses.is_dataclass(assignor)
    known = [field.name for field in dataclasses.fields(assignor)]
    for name in options:
        if name not in known:
            there_are = f"its options are {', '.join(known)}" if known else "it has no options"
            raise BadCaseError(f"options.{name} is not an option of {assignor.name}; {there_are}")
    numbers = {name: _read.number(value, f"options.{name}") for name, value in options.items()}
    try:
        return dataclasses.replace(assignor, **numbers)
    except ValueError as error:
        raise BadCaseError(f"options: {error}") from error


def _load(case: dict[str, Any], partitions: Mapping[str, int], capacity: float) -> TopicLoads | None:
    given = [name for name in ("weights", "lag", "rate", "resources") if case.get(name) is not None]
    if len(given) > 1 and given != ["lag", "rate"]:
        raise BadCaseError(f"{' and '.join(given)} are given; give the load in one way only")
    for name, of in (("horizon_s", "lag"), ("resource_weights", "resources")):
        if case.get(name) is not None and case.get(of) is None:
            raise BadCaseError(f"{name} is given without {of}; it has no effect on its own")
    if case.get("weights") is not None:
        return _loads(case["weights"], "weights", partitions)
    if case.get("lag") is not None or case.get("rate") is not None:
        lag, rate = (_loads(case.get(name) or {}, name, partitions) for name in ("lag", "rate"))
        horizon_s = None if case.get("horizon_s") is None else _read.number(case["horizon_s"], "horizon_s")
        return drain_weight(lag, rate, capacity, horizon_s=horizon_s)
    if case.get("resources") is not None:
        return _mixed(case, partitions)
    return None


def _mixed(case: dict[str, Any], partitions: Mapping[str, int]) -> Mapping[str, Floats]:
    resources = {
        n: _loads(v, f"resources.{n}", partitions) for n, v in _read.an_object(case["resources"], "resources").items()
    }
    given = _read.an_object(case.get("resource_weights", {}), "resource_weights")
    return mix(resources, {name: _read.number(weight, f"resource_weights.{name}") for name, weight in given.items()})


def _loads(given: object, where: str, partitions: Mapping[str, int]) -> dict[str, Floats]:
    """Read loads by topic. Loads of topics without metadata are checked and dropped."""
    loads: dict[str, Floats] = {}
    for topic, row in _read.an_object(given, where).items():
        numbers = _numbers(_read.a_list(row, f"{where}.{topic}"), f"{where}.{topic}")
        if topic not in partitions:
            continue
        if len(numbers) != partitions[topic]:
            raise BadCaseError(
                f"{where}.{topic} has {len(numbers)} numbers, but topic {topic} has {partitions[topic]} partitions;"
                " give one for each, null where it is unknown"
            )
        loads[topic] = numbers
    return loads


def _numbers(row: list[Any], where: str) -> Floats:
    """float64[n]: the numbers of a list, NaN for null."""
    # A million numbers are read without a line of Python for each.
    if set(map(type, row)) <= {int, float, NoneType} and max(map(abs, filter(None, row)), default=0) <= LARGEST:
        return np.array(row, np.float64)
    return np.array([None if n is None else _read.number(n, f"{where}[{i}]") for i, n in enumerate(row)], np.float64)


def _bytes(value: object, where: str) -> bytes:
    try:
        return bytes.fromhex(_read.text(value, where))
    except ValueError:
        _read.refuse(value, where, "bytes as pairs of hexadecimal digits")
