"""A case: a group, its topics and a strategy written down as one JSON object, and the answer to it.

This is how anything that is not a consumer asks for an assignment: ``loadwise assign``, a what-if, another program that
compares assignors. The object, ``?`` marking what may be left out::

    {"id"?: any,                                   echoed
     "strategy": "weighted",                       a name in `loadwise.assignor.strategy.STRATEGIES`
     "topics": {"t": {"partitions": 3, "racks"?: [["a", "b"], "c", null]}},
     "weights"?: {"t": [12.5, null, 0]},           the load of each partition; null: unknown
     "lag"?: {"t": [900, 0, null]}, "rate"?: {"t": [3.5, 0, 1]},      or these: records, records/s
     "resources"?: {"bytes_in": {"t": [1, 2, 3]}}, "resource_weights"?: {"bytes_in": 0.6},     or several of them
     "options"?: {"epsilon": 0.05},                the algorithm's parameters
     "members": [{"id": "m1", "topics": ["t"], "group_instance_id"?: "i1", "rack"?: "a", "capacity"?: 2.0,
                  "owned"?: [["t", 0]], "generation"?: 5}]}

Members of old clients (``subscription_version`` below 3) are read as a leader would see them: without rack below 3,
without what a cooperative member owns below 1; ``user_data_version`` 0 is sticky user data without a generation.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.drain import drain_weight
from loadwise.assignor.errors import BadCaseError
from loadwise.assignor.model import NO_GENERATION, Assignment, Assignor, GroupSnapshot, Member
from loadwise.assignor.staging import stage
from loadwise.assignor.strategy import Strategy, strategy

Loads = dict[str, list[float | None]]

MOST_PARTITIONS = 10_000_000
"""Partitions of all topics together: ten times what is built for, so that a slip of the keyboard is no MemoryError."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One question, read and checked. Build it with `Case.parse`."""

    id: Any
    """Whatever the asker called it; None if nothing."""
    strategy: Strategy
    assignor: Assignor
    """The strategy's algorithm, with the parameters that the case asks for."""
    members: tuple[Member, ...]
    partitions: Mapping[str, int]
    racks: Mapping[str, Sequence[Sequence[str]]]
    load: Loads | None

    @classmethod
    def parse(cls, given: object) -> Case:
        """Read a case from what ``json.loads`` made of it. Raises `BadCaseError` or `UnknownStrategyError`."""
        case = _object(given, "the case")
        chosen = strategy(_text(case.get("strategy"), "strategy"))
        topics = {name: _object(spec, f"topics.{name}") for name, spec in _object(case.get("topics"), "topics").items()}
        partitions = {
            name: _integer(spec.get("partitions"), f"topics.{name}.partitions", least=0)
            for name, spec in topics.items()
        }
        total = sum(partitions.values())
        if total > MOST_PARTITIONS:
            raise BadCaseError(f"topics have {total:,} partitions together; at most {MOST_PARTITIONS:,} are taken")
        members = tuple(
            _member(_object(member, f"members[{index}]"), f"members[{index}]", cooperative=chosen.cooperative)
            for index, member in enumerate(_list(case.get("members"), "members"))
        )
        return cls(
            id=case.get("id"),
            strategy=chosen,
            assignor=_with_options(algorithm(chosen.algorithm), _object(case.get("options", {}), "options")),
            members=members,
            partitions=partitions,
            racks={
                name: _racks(spec["racks"], f"topics.{name}.racks")
                for name, spec in topics.items()
                if spec.get("racks") is not None
            },
            load=_load(case, sum(member.capacity for member in members)),
        )

    def answer(self) -> Assignment:
        """Answer what goes on the wire: the target, staged when the strategy is cooperative."""
        group = GroupSnapshot.of(self.members, self.partitions, load=self.load, racks=self.racks)
        target = self.assignor.assign(group)
        return stage(target) if self.strategy.cooperative else target


def load_json(text: str | bytes) -> object:
    """``json.loads``, but NaN and infinity, which JSON does not have, raise `BadCaseError`. Else what that raises."""
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise BadCaseError(f"{name} is not a number that JSON has; write null for what is unknown")


def _member(member: dict[str, Any], where: str, *, cooperative: bool) -> Member:
    version = _integer(member.get("subscription_version", 3), f"{where}.subscription_version", least=0)
    hidden = cooperative and version < 1
    generation = member.get("generation")
    if generation is None or member.get("user_data_version") == 0:
        generation = NO_GENERATION
    rack = member.get("rack")
    instance_id = member.get("group_instance_id")
    return Member(
        id=_text(member.get("id"), f"{where}.id"),
        topics=_texts(member.get("topics"), f"{where}.topics"),
        owned={} if hidden else _owned(member.get("owned"), f"{where}.owned"),
        generation=_integer(generation, f"{where}.generation", least=NO_GENERATION),
        instance_id=None if instance_id is None else _text(instance_id, f"{where}.group_instance_id"),
        rack=None if rack is None or version < 3 else _text(rack, f"{where}.rack"),
        capacity=_number(member.get("capacity", 1.0), f"{where}.capacity"),
    )


def _owned(given: object, where: str) -> dict[str, list[int]]:
    owned: dict[str, list[int]] = {}
    if given is None:
        return owned
    for index, pair in enumerate(_list(given, where)):
        if not isinstance(pair, list) or len(pair) != 2:
            raise BadCaseError(f"{where}[{index}] is {_short(pair)}; expected [topic, partition]")
        topic = _text(pair[0], f"{where}[{index}][0]")
        owned.setdefault(topic, []).append(_integer(pair[1], f"{where}[{index}][1]"))
    return owned


def _racks(given: object, where: str) -> list[list[str]]:
    racks: list[list[str]] = []
    for index, replicas in enumerate(_list(given, where)):
        if replicas is None:
            racks.append([])
        elif isinstance(replicas, str):
            racks.append([replicas])
        else:
            racks.append(_texts([rack for rack in _list(replicas, f"{where}[{index}]") if rack is not None], where))
    return racks


def _with_options(assignor: Assignor, options: dict[str, Any]) -> Assignor:
    if not options:
        return assignor
    assert dataclasses.is_dataclass(assignor)
    known = [field.name for field in dataclasses.fields(assignor)]
    for name in options:
        if name not in known:
            there_are = f"its options are {', '.join(known)}" if known else "it has no options"
            raise BadCaseError(f"options.{name} is not known to {assignor.name}; {there_are}")
    try:
        return dataclasses.replace(assignor, **{k: _number(v, f"options.{k}") for k, v in options.items()})
    except ValueError as error:
        raise BadCaseError(f"options: {error}") from error


def _load(case: dict[str, Any], capacity: float) -> Loads | None:
    ways = [name for name in ("weights", "lag", "resources") if case.get(name) is not None]
    if len(ways) > 1:
        raise BadCaseError(f"{' and '.join(ways)} are given; the load can be given in one way only")
    if case.get("weights") is not None:
        return _loads(case["weights"], "weights")
    if case.get("lag") is not None or case.get("rate") is not None:
        return drain_weight(_loads(case.get("lag", {}), "lag"), _loads(case.get("rate", {}), "rate"), capacity)
    if case.get("resources") is not None:
        return _mixed(case)
    return None


def _mixed(case: dict[str, Any]) -> Loads:
    """Several resources as one load: each as a share of its own total, times its weight; unknown if any is unknown."""
    resources = {n: _loads(v, f"resources.{n}") for n, v in _object(case["resources"], "resources").items()}
    given = _object(case.get("resource_weights", {}), "resource_weights")
    for name in given:
        if name not in resources:
            raise BadCaseError(f"resource_weights.{name} has no resource of that name")
    mixed: dict[str, np.ndarray[Any, np.dtype[np.float64]]] = {}
    for name, loads in resources.items():
        weight = _number(given.get(name, 1.0), f"resource_weights.{name}")
        if weight < 0:
            raise BadCaseError(f"resource_weights.{name} is {weight}; it must be 0 or more")
        total = math.fsum(load for row in loads.values() for load in row if load is not None)
        for topic, row in loads.items():
            share = np.array(row, np.float64) * (weight / total if total > 0 else 0.0)
            before = mixed.get(topic)
            if before is not None and len(before) != len(share):
                raise BadCaseError(f"resources.{name}.{topic} has {len(share)} numbers, another resource {len(before)}")
            mixed[topic] = share if before is None else before + share
    return {topic: [None if math.isnan(load) else load for load in row.tolist()] for topic, row in mixed.items()}


def _loads(given: object, where: str) -> Loads:
    return {
        topic: [
            None if load is None else _number(load, f"{where}.{topic}[{index}]")
            for index, load in enumerate(_list(row, f"{where}.{topic}"))
        ]
        for topic, row in _object(given, where).items()
    }


def _object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadCaseError(f"{where} is {_short(value)}; expected an object")
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadCaseError(f"{where} is {_short(value)}; expected a list")
    return value


def _texts(value: object, where: str) -> list[str]:
    return [_text(item, f"{where}[{index}]") for index, item in enumerate(_list(value, where))]


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise BadCaseError(f"{where} is {_short(value)}; expected a string")
    return value


def _integer(value: object, where: str, *, least: int | None = None) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 2**31:
        raise BadCaseError(f"{where} is {_short(value)}; expected a whole number of 32 bits")
    if least is not None and value < least:
        raise BadCaseError(f"{where} is {value}; expected {least} or more")
    return value


def _number(value: object, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadCaseError(f"{where} is {_short(value)}; expected a number")
    return float(value)


def _short(value: object) -> str:
    if value is None:
        return "missing"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
