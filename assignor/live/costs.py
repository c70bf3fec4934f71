"""What records cost, where those of one topic keep a member busy for longer than those of another.

Everything is then in records of one cost: what arrives and waits, and what members can process. Users may state the
costs. Otherwise they are learned from how long members work on a record of each topic, as
`loadwise.assignor.live.work` measures it. A fast member needs less time for the records of all topics, so its
times are compared with that for the busiest topic only, and the median over the members counts. What differs little
does not differ at all, so that topics whose records cost the same come out as the same.
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
    """Topic to what one of its records costs: as users have ``stated`` it, or else from what members tell."""

    def __init__(self, stated: Mapping[str, float] | None = None, tuning: CostTuning | None = None) -> None:
        self._tuning, self._stated = tuning or CostTuning(), bool(stated)
        self.of_topic: Mapping[str, float] = stated or {}
        """1 where a topic is not named. Of those that are learned, the busiest one has 1; empty while all are alike."""
        self.news = False
        """Whether members have told something since the last `settle`."""
        self._told: dict[str, tuple[Mapping[str, float], int]] = {}
        """What members have told last, where that was of several topics, and when."""
        self._rates: Mapping[str, float] = {}
        self._busiest = ""

    def told(self, member: str, each_s: Mapping[str, float], now_ms: int) -> None:
        """A member works for so many seconds on a record of each topic; empty where it has told none."""
        usable = {topic: each for topic, each in each_s.items() if 0 < each < math.inf}
        if len(usable) <= 1 or self._stated:  # a single topic is compared with nothing
            self._told.pop(member, None)
            return
        self.news = self.news or self._told.get(member, ({}, 0))[0] != usable
        self._told[member] = usable, now_ms

    def speed_of(self, member: str) -> tuple[float, int]:
        """Records of cost 1 that a member processes in a busy second, and when it has told what tells that.

        It goes by what the member takes for the records of each topic, and these count by what arrives in them. 0 where
        it has told no such times last, or nothing was learned of costs.
        Its records in a busy second would tell less: they change with what it reads, and vary from poll to poll.
        """
        told, at_ms = self._told.get(member, ({}, 0))
        shares = {topic: self._rates.get(topic, 0.0) for topic in told if topic in self.of_topic}
        if not any(shares.values()):
            shares = dict.fromkeys(shares, 1.0)
        took_s = sum(share * told[topic] for topic, share in shares.items())
        paid = sum(share * self.of_topic[topic] for topic, share in shares.items())
        return (paid / took_s if took_s > 0 else 0.0), at_ms

    def of_member(self, member: str, watched: Watched | None, rate: Floats) -> float:
        """What a record that comes to a member costs in the mean; 0 where a number of them tells no speed. O(P).

        ``rate`` is float64[P], what arrives in each partition.
        """
        if not self.of_topic:
            return 1.0
        if watched is None or member not in watched.names:
            return 1.0 if self._stated else 0.0  # what it has read is not known
        mine = np.flatnonzero(watched.group.owner == watched.names.index(member))
        each = [self.of_topic.get(watched.group.topics[topic], 1.0) for topic in watched.group.topic_of[mine].tolist()]
        if not self._stated and len(set(each)) != 1:
            return 0.0  # a number of mixed records changes with what the member reads
        weight = np.nan_to_num(watched.of_group(rate)[mine], nan=0.0)
        return float(np.average(each, weights=weight if weight.any() else None)) if each else 1.0

    def keep(self, members: Iterable[str]) -> None:
        """Forget what others have told, but not what was learned of it."""
        there = set(members)
        self._told = {member: each for member, each in self._told.items() if member in there}

    def settle(self, rates: Mapping[str, float]) -> bool:
        """Merge what members have told; ``rates`` is each topic's arrivals in records/s. Whether a cost has changed."""
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
        """The cost of a topic by what is found now; as it was where it is off by little: it must not go to and fro."""
        tuning = self._tuning
        if abs(octaves) < (tuning.apart if before == 1 else tuning.alike):
            return 1.0
        if before != 1 and abs(octaves - math.log2(before)) <= tuning.stays:
            return before
        return float(2.0 ** min(max(octaves, -tuning.furthest), tuning.furthest))


def _octaves(told: Sequence[Mapping[str, float]], busiest: str) -> dict[str, float]:
    """Topic to the octaves by which its records take longer than those of the busiest, by members that read both."""
    ratios: dict[str, list[float]] = {}
    for each in told:
        if busiest in each:
            for topic, seconds in each.items():
                ratios.setdefault(topic, []).append(math.log2(seconds) - math.log2(each[busiest]))
    return {topic: median(of_topic) for topic, of_topic in ratios.items()}
