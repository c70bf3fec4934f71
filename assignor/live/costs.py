"""What records cost, where those of one topic keep a member busy for longer than those of another.

Everything is then in records of one cost: what arrives and waits, and what members can process. Users may state the
costs. Otherwise they are learned from how long members work on a record of each topic, as
`loadwise.assignor.live.topic_times` measures it. A fast member needs less time for the records of all topics, so its
times are compared with each other only. What the members find is merged by medians. It is rounded to eighths of
an octave, and what differs little does not differ at all, so that topics whose records cost the same come out as the
same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from loadwise.assignor.model import Floats, Ints

_HALF_LIFE_MS = 60_000
"""As long as members remember what they measure of themselves."""
_SWEEPS = 10
"""Medians over topics and over members in turn: so often, or until nothing changes."""
_STEPS_PER_OCTAVE = 8
_FURTHEST = 7.0
"""Costs differ by so many octaves at most."""
_APART, _ALIKE = 0.7, 0.5
"""Octaves from which on a topic is told from the busiest one, and below which it is not any more."""
_STAYS = 3.0
"""A cost stays as it is up to so many steps from what is found now: it must not go to and fro..."""
_STAYS_LONG, _LONG_MS = 1.2, 60_000
"""... unless it was found to be off by more than so many steps, always on the same side, for so long."""
_MUCH_BUSIER = 2.0
"""Topics are compared with the busiest one until another has so many times its arrivals: it must not change often."""


class MeanCosts:
    """What a record has cost each member in the mean lately."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float]] = {}
        """Records of each member, and what they cost, both forgotten by half in a minute."""

    def saw(self, members: Sequence[str], records: Floats, cost: Floats, elapsed_ms: int) -> None:
        """These members have processed so many records since the last call, which cost so much; all others are gone."""
        kept = 0.5 ** (elapsed_ms / _HALF_LIFE_MS)
        before = (self._seen.get(member, (0.0, 0.0)) for member in members)
        each = zip(members, before, records.tolist(), cost.tolist(), strict=True)
        self._seen = {member: (old[0] * kept + count, old[1] * kept + paid) for member, old, count, paid in each}

    def of(self, member: str) -> float:
        """The mean cost of its records; of everybody's where it has processed none, and 1 where nobody has any."""
        records, cost = self._seen.get(member, (0.0, 0.0))
        if not records:
            records, cost = np.array([*self._seen.values(), (0.0, 0.0)]).sum(axis=0).tolist()
        return cost / records if records else 1.0

    def rescale(self, factors: Mapping[str, float]) -> None:
        """Costs have changed: what each member has processed has cost so many times as much."""
        self._seen = {
            member: (records, cost * factors.get(member, 1.0)) for member, (records, cost) in self._seen.items()
        }


class LearnedCosts:
    """Topic to what one of its records costs, from what members tell."""

    def __init__(self) -> None:
        self.of_topic: Mapping[str, float] = {}
        """Topic to its cost, where the mean record costs 1; empty while no topic is told from another.

        While nothing is known to arrive, it is the mean of the topics.
        """
        self._told: dict[str, Mapping[str, float]] = {}
        self.news = False
        """Whether members have told something since the last `settle`."""
        self._newest: dict[str, tuple[Mapping[str, float], int]] = {}
        """What members have told last, where that was of several topics, and when."""
        self._told_ms = 0
        self._by_arrivals = False
        """Whether `of_topic` is relative to the mean of what arrives."""
        self._rates: Mapping[str, float] = {}
        self._steps: dict[str, int] = {}
        self._off: dict[str, tuple[bool, int]] = {}
        """Topics whose costs are off by a little: whether they are too low, and since when."""
        self._busiest = ""

    def told(self, member: str, each_s: Mapping[str, float], now_ms: int) -> None:
        """A member works for so many seconds on a record of each topic; empty where it has told none."""
        usable = {topic: each for topic, each in each_s.items() if 0 < each < math.inf}
        if len(usable) <= 1:  # a single topic is compared with nothing
            self._newest.pop(member, None)
            return
        self._newest[member] = usable, now_ms
        self._told_ms = max(self._told_ms, now_ms)
        if self._told.get(member) != usable:
            self._told[member] = usable
            self.news = True

    def speed_of(self, member: str) -> tuple[float, int]:
        """Records of the mean cost that a member processes in a busy second, and when it has told what tells that.

        It goes by what the member takes for the records of each topic, and these count by what arrives in them. 0 where
        it has told no such times last, or nothing was learned of costs.
        Its records in a busy second would tell less: they change with what it reads, and vary from poll to poll.
        """
        told, at_ms = self._newest.get(member, ({}, 0))
        shares = {topic: self._rates.get(topic, 0.0) for topic in told if topic in self.of_topic}
        if not any(shares.values()):
            shares = dict.fromkeys(shares, 1.0)
        took_s = sum(share * told[topic] for topic, share in shares.items())
        paid = sum(share * self.of_topic[topic] for topic, share in shares.items())
        return (paid / took_s if took_s > 0 else 0.0), at_ms

    def keep(self, members: Iterable[str]) -> None:
        """Forget what others have told, but not what was learned of it."""
        there = set(members)
        self._told = {member: each for member, each in self._told.items() if member in there}
        self._newest = {member: each for member, each in self._newest.items() if member in there}

    def settle(self, rates: Mapping[str, float]) -> bool:
        """Merge what members have told; ``rates`` is each topic's arrivals in records/s. Whether a cost has changed."""
        if not self.news:
            return False
        self.news = False
        self._rates = rates
        topics = {topic for each in self._told.values() for topic in each}
        if not topics:
            return False
        busiest = max(sorted(topics), key=lambda topic: rates.get(topic, 0.0))
        if self._busiest in topics and rates.get(busiest, 0.0) < _MUCH_BUSIER * rates.get(self._busiest, 0.0):
            busiest = self._busiest
        self._busiest = busiest
        found = merged(_comparable(self._told.values(), busiest))
        shift = self._steps.get(busiest, 0)
        there = rates.keys() | found.keys()  # topics of a pattern come and go
        before = {topic: step - shift for topic, step in self._steps.items() if topic in there}
        steps = before | {
            topic: self._step(topic, octaves - found[busiest], before.get(topic, 0)) for topic, octaves in found.items()
        }
        self._off = {topic: off for topic, off in self._off.items() if topic in there}
        arriving = {topic: rates.get(topic, 0.0) for topic in steps}
        arrives = any(arriving.values())
        settled = steps == before and (self._by_arrivals or not arrives)
        if settled or not any([*steps.values(), *before.values()]):
            return False
        self._steps, self._by_arrivals = steps, arrives
        self.of_topic = {}
        if any(steps.values()):
            weights = arriving if arrives else dict.fromkeys(steps, 1.0)
            cost = {topic: 2.0 ** (step / _STEPS_PER_OCTAVE) for topic, step in steps.items()}
            mean = sum(weights[topic] * each for topic, each in cost.items()) / sum(weights.values())
            self.of_topic = {topic: each / mean for topic, each in cost.items()}
        return True

    def _step(self, topic: str, octaves: float, before: int) -> int:
        """The parts of an octave that a topic is given, where it had ``before``."""
        octaves = min(max(octaves, -_FURTHEST), _FURTHEST)
        off, now_ms = octaves * _STEPS_PER_OCTAVE - before, self._told_ms
        too_low, since_ms = self._off.pop(topic, (off > 0, now_ms))
        if abs(octaves) < (_ALIKE if before else _APART):
            return 0
        if not before or abs(off) > _STAYS:
            return before + round(off)
        if abs(off) <= _STAYS_LONG:
            return before
        if too_low != (off > 0):
            since_ms = now_ms
        if now_ms - since_ms >= _LONG_MS:
            return before + round(off)
        self._off[topic] = off > 0, since_ms
        return before


def _comparable(told: Iterable[Mapping[str, float]], topic: str) -> list[Mapping[str, float]]:
    """What is told by members who read this topic, or one that such a member reads too, and so on.

    Nothing compares the others' topics with it: that they take longer may as well be the speed of who reads them.
    """
    reached, chosen, others = {topic}, [], list(told)
    while joined := [each for each in others if not reached.isdisjoint(each)]:
        others = [each for each in others if reached.isdisjoint(each)]
        chosen += joined
        reached = reached.union(*joined)
    return chosen


def merged(told: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Topic to the octaves by which its records take longer than others, from seconds a record of several members.

    Each member is so many octaves slower than others with all topics, and each topic with all members: Tukey's median
    polish of a table with gaps.
    """
    topics = sorted({topic for each in told for topic in each})
    if not topics:
        return {}
    place = {topic: number for number, topic in enumerate(topics)}
    members = np.repeat(np.arange(len(told)), [len(each) for each in told])
    places = np.array([place[topic] for each in told for topic in each])
    octaves = np.log2([seconds for each in told for seconds in each.values()])
    of_topic = np.zeros(len(topics))
    for _ in range(_SWEEPS):
        of_member = _medians(members, octaves - of_topic[places], len(told))
        before, of_topic = of_topic, _medians(places, octaves - of_member[members], len(topics))
        if np.array_equal(before, of_topic):
            break
    return dict(zip(topics, of_topic.tolist(), strict=True))


def _medians(groups: Ints, values: Floats, size: int) -> Floats:
    """float64[size]: the median of the values of each group, 0 of none. ``groups`` is int64[n], ``values`` float64[n].

    O(n log n): few members tell of few topics each, and a table of all would be mostly gaps.
    """
    count = np.bincount(groups, minlength=size)
    ordered = np.append(values[np.lexsort((values, groups))], 0.0)
    start = np.cumsum(count) - count
    middle = (ordered[start + np.maximum(count - 1, 0) // 2] + ordered[start + count // 2]) / 2
    return np.where(count > 0, middle, 0.0)
