"""What to do next for a batch, from what is found of its partitions. Pure."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from loadwise.balance.errors import SurpriseError, UnfitClusterError, UnsettledError
from loadwise.balance.readings import Name, Sizes

GO_ON = "run --follow again when this is fixed; it continues from the current state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A batch as its files have it."""

    replicas: Mapping[Name, tuple[int, ...]]
    """Of the partitions that are reassigned."""
    elected: tuple[Name, ...] = ()
    """Partitions that their preferred leader should lead."""

    @property
    def names(self) -> frozenset[Name]:
        """All partitions of the batch."""
        return frozenset((*self.replicas, *self.elected))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A partition as it is found."""

    replicas: tuple[int, ...]
    leader: int
    in_sync: frozenset[int]
    offline: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A cluster as it is found."""

    brokers: frozenset[int]
    """Those that are up."""
    partitions: Mapping[Name, Found]
    """Those of the batch's topics."""
    targets: Mapping[Name, tuple[int, ...]] = field(default_factory=dict)
    """Of each partition with a reassignment under way: the replicas after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is left of a batch."""

    start: tuple[Name, ...]
    """Reassignments to start."""
    waiting: tuple[Name, ...]
    """Reassignments that are under way, or whose replicas are not in sync yet."""
    elect: tuple[Name, ...]
    """Preferred leaders to elect, once nothing else is left."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return not (self.start or self.waiting or self.elect)


def read_steps(files: Mapping[str, str]) -> list[Step]:
    """The batches of a folder, from the texts of its files by their names. Raises `UnfitClusterError`."""
    steps: dict[str, dict[str, list[tuple[Name, tuple[int, ...]]]]] = defaultdict(dict)
    for name, text in sorted(files.items()):
        try:
            rows = json.loads(text)["partitions"]
            kind = "elected" if name.endswith("-leaders.json") else "replicas"
            steps[name.removesuffix(".json").removesuffix("-leaders")][kind] = [
                ((str(row["topic"]), int(row["partition"])), tuple(map(int, row.get("replicas", ())))) for row in rows
            ]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnfitClusterError(f"{name} is not a batch of a plan ({error!r}); write it with --out") from error
    return [
        Step(
            replicas=dict(step.get("replicas", ())),
            elected=tuple(name for name, _ in step.get("elected", ())),
        )
        for _, step in sorted(steps.items())
    ]


def work_of(step: Step, seen: Seen, *, is_started: bool) -> Work:
    """What is left of the batch. Raises `SurpriseError` for what the plan does not expect, `UnsettledError` among them.

    ``is_started`` says whether its reassignments were started: those that are neither under way nor complete failed.
    """
    _check_others(step, seen)
    start, waiting, elect = [], [], []
    for name in sorted(step.names):
        found = _checked(name, seen)
        wanted = step.replicas.get(name, found.replicas)
        for broker in wanted:
            if broker not in seen.brokers:
                raise SurpriseError(f"broker {broker}, which has a replica of {_named(name)}, is not up; {GO_ON}")
        target = seen.targets.get(name)
        if target is not None:
            if set(target) != set(wanted):
                raise SurpriseError(
                    f"partition {_named(name)} is being reassigned to {_listed(target)}, but the plan says"
                    f" {_listed(wanted)}; plan again when kafka-reassign-partitions.sh --list shows none"
                )
            waiting.append(name)
        elif found.replicas != wanted:
            if is_started:
                raise UnsettledError(
                    f"the reassignment of partition {_named(name)} ended with replicas {_listed(found.replicas)}, but"
                    f" the plan says {_listed(wanted)}: it was cancelled or replaced; plan again"
                )
            _check_in_sync(name, found)
            start.append(name)
        elif not found.in_sync >= set(wanted):
            if not is_started:
                _check_in_sync(name, found)
            waiting.append(name)
        elif name in step.elected and found.leader != wanted[0]:
            elect.append(name)
    return Work(start=tuple(start), waiting=tuple(waiting), elect=tuple(elect))


def check_brokers(expected: frozenset[int], seen: Seen) -> None:
    """Raises `SurpriseError` if a broker is not up any more."""
    for broker in sorted(expected - seen.brokers):
        raise SurpriseError(f"broker {broker} is no longer up; {GO_ON}")


def check_space(step: Step, seen: Seen, names: Iterable[Name], sizes: Sizes, headroom: Mapping[int, float]) -> None:
    """Raises `SurpriseError` if a disk has grown so much that replicas that are started exceed the headroom.

    ``headroom`` are the bytes that the disks of brokers may hold, ``sizes`` those that they hold.
    """
    held: dict[int, float] = defaultdict(float)
    for (_, broker), size in sizes.items():
        held[broker] += size
    for name in names:
        found = seen.partitions[name]
        size = sizes.get((name, found.leader), 0)
        for broker in step.replicas[name]:
            if broker not in found.replicas and size:
                held[broker] += size
                if held[broker] > headroom.get(broker, math.inf):
                    raise SurpriseError(
                        f"broker {broker} has no space for partition {_named(name)}: its disk would hold"
                        f" {held[broker]:,.0f} bytes, but its headroom is {headroom[broker]:,.0f}; plan again"
                    )


def throttled_replicas(step: Step, seen: Seen, names: Iterable[Name]) -> dict[str, tuple[str, str]]:
    """Of each topic: the replicas that send and those that receive, as Kafka's configs have them."""
    sending: dict[str, list[str]] = defaultdict(list)
    receiving: dict[str, list[str]] = defaultdict(list)
    for topic, number in names:
        was = seen.partitions[topic, number].replicas
        arrive = [broker for broker in step.replicas[topic, number] if broker not in was]
        if arrive:
            sending[topic] += [f"{number}:{broker}" for broker in was]
            receiving[topic] += [f"{number}:{broker}" for broker in arrive]
    return {topic: (",".join(sending[topic]), ",".join(receiving[topic])) for topic in sending}


def _checked(name: Name, seen: Seen) -> Found:
    found = seen.partitions.get(name)
    if found is None:
        raise SurpriseError(f"partition {_named(name)} no longer exists; plan again")
    if found.leader < 0:
        raise SurpriseError(f"partition {_named(name)} has no leader; {GO_ON}")
    for broker in sorted(found.offline):
        raise SurpriseError(f"the replica of partition {_named(name)} on broker {broker} is offline; {GO_ON}")
    return found


def _check_others(step: Step, seen: Seen) -> None:
    for name in seen.targets:
        if name not in step.replicas:
            raise SurpriseError(
                f"partition {_named(name)} is being reassigned outside this batch; run --follow again when"
                " kafka-reassign-partitions.sh --list shows none"
            )


def _check_in_sync(name: Name, found: Found) -> None:
    lagging = [broker for broker in found.replicas if broker not in found.in_sync]
    if lagging:
        raise UnsettledError(
            f"the replicas of partition {_named(name)} on brokers {_listed(lagging)} are not in sync; {GO_ON}"
        )


def _named(name: Name) -> str:
    return f"{name[0]}-{name[1]}"


def _listed(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))
