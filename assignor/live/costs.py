"""The cost of a topic's records: the median of the members' times, each relative to its time for the busiest topic.

A fast member needs less time for the records of all topics, so only its own times are compared. A small difference is
ignored, so that topics with equal costs get equal values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import numpy as np

from loadwise.assignor.live.tuning import CostTuning
from loadwise.assignor.live.watched import Watched
from loadwise.assignor.model import Floats


class TopicCosts:
    """Topic to the cost of one of its records: ``stated`` by users, or else learned from members' reports."""

    def __init__(self, stated: Mapping[str, float] | None = None, tuning: CostTuning | None = None) -> None:
        self._tuning, self._stated = tuning or CostTuning(), bool(stated)
        self.of_topic: Mapping[str, float] = stated or {}
        """A topic without an entry costs 1, and so does the busiest one if learned; empty while all costs are alike."""
        self.news = False  # whether a member has reported new times since the last `settle`
        self._told: dict[str, tuple[Mapping[str, float], int]] = {}
        """The last report of each member that named several topics, and its time."""
        self._rates: Mapping[str, float] = {}
        self._busiest = ""

    def told(self, member: str, each_s: Mapping[str, float], now_ms: int) -> None:
        """Store the seconds that a member reports for a record of each topic; empty if it reported none."""
        usable = {topic: each for topic, each in each_s.items() if 0 < each < math.inf}
        if len(usable) <= 1 or self._stated:  # a single topic has no other to compare with
            self._told.pop(member, None)
            return
        self.news = self.news or self._told.get(member, ({}, 0))[0] != usable
        self._told[member] = usable, now_ms

    def speed_of(self, member: str) -> tuple[float, int]:
        """Return how many records of cost 1 a member processes in a busy second, 0 if unknown, and when it said so.

        The plain record rate that it reports is less exact, because it depends on the mix of topics.
        """
        told, at_ms = self._told.get(member, ({}, 0))
        shares = {topic: self._rates.get(topic, 0.0) for topic in told if topic in self.of_topic}
        if not any(shares.values()):
            shares = dict.fromkeys(shares, 1.0)
        took_s = sum(share * told[topic] for topic, share in shares.items())
        paid = sum(share * self.of_topic[topic] for topic, share in shares.items())
        return (paid / took_s if took_s > 0 else 0.0), at_ms

    def of_member(self, member: str, watched: Watched | None, rate: Floats) -> float:
        """Return the mean cost of a record that a member reads; 0 if its record rate implies no speed. O(P)."""
        if not self.of_topic:
            return 1.0
        if watched is None or member not in watched.names:
            return 1.0 if self._stated else 0.0  # the topics that it has read are unknown
        mine = np.flatnonzero(watched.group.owner == watched.names.index(member))
        each = [self.of_topic.get(watched.group.topics[topic], 1.0) for topic in watched.group.topic_of[mine].tolist()]
        if not self._stated and len(set(each)) != 1:
            return 0.0  # the rate of mixed records depends on the mix
        weight = np.nan_to_num(watched.of_group(rate)[mine], nan=0.0)
        return float(np.average(each, weights=weight if weight.any() else None)) if each else 1.0

    def keep(self, members: Iterable[str]) -> None:
        """Drop the reports of all other members, but keep the costs learned from them."""
        there = set(members)
        self._told = {member: each for member, each in self._told.items() if member in there}

    def settle(self, rates: Mapping[str, float]) -> bool:
        """Merge members' reports, return whether a cost changed; ``rates`` is each topic's arrivals in records/s."""
        told, self.news, self._rates = [each for each, _ in self._told.values()], False, rates
        topics = sorted({topic for each in told for topic in each})
        if not topics:
            return False
        busiest = max(topics, key=lambda topic: rates.get(topic, 0.0))
        if self._busiest not in topics or rates.get(busiest, 0.0) >= self._tuning.much_busier * rates.get(
            self._busiest, 0.0
        ):
            self._busiest = busiest
        found = _octaves(told, self._busiest)
        there = rates.keys() | found.keys()  # topics of a pattern come and go
        unit = self.of_topic.get(self._busiest, 1.0)
        costs = {topic: cost / unit for topic, cost in self.of_topic.items() if topic in there}
        for topic, octaves in found.items():
            costs[topic] = self._cost(octaves, costs.get(topic, 1.0))
        if all(cost == 1 for cost in costs.values()):
            costs = {}
        changed, self.of_topic = costs != self.of_topic, costs
        return changed

    def _cost(self, octaves: float, before: float) -> float:
        """Return the new cost of a topic, or the old one if the change is small, so that it does not oscillate."""
        tuning = self._tuning
        if abs(octaves) < (tuning.apart if before == 1 else tuning.alike):
            return 1.0
        if before != 1 and abs(octaves - math.log2(before)) <= tuning.stays:
            return before
        return float(2.0 ** min(max(octaves, -tuning.furthest), tuning.furthest))


def _octaves(told: Sequence[Mapping[str, float]], busiest: str) -> dict[str, float]:
    """Return topic to the octaves by which its records take longer than the busiest's, by members that read both."""
    ratios: dict[str, list[float]] = {}
    for each in told:
        if busiest in each:
            for topic, seconds in each.items():
                ratios.setdefault(topic, []).append(math.log2(seconds) - math.log2(each[busiest]))
    return {topic: median(of_topic) for topic, of_topic in ratios.items()}
