"""Mix several resources into one load: bytes in, bytes out, CPU, records, each with a weight.

The costs of a consumer's work have different units. Each resource is divided by its total and multiplied by its
weight, and the results are added, like Astraea's weighted sum of costs. A weight is thus how much a resource matters,
whatever its unit, and the loads of all partitions add up to the sum of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.impute import guess
from loadwise.assignor.load.source import LoadSnapshot, LoadSource, TopicLoads, of_topics
from loadwise.assignor.model import Floats
from loadwise.assignor.rows import topic_loads


def mix(resources: Mapping[str, TopicLoads], weights: Mapping[str, float] | None = None) -> dict[str, Floats]:
    """Mix resources into one load by topic, float64[partitions], NaN where no resource has a value.

    ``weights`` has a weight for each resource, 1 by default; a resource of weight 0 is skipped. If only some resources
    have a value for a partition, the others are estimated (`loadwise.assignor.impute`).

    Raises `BadGroupError` for a negative or infinite weight or load, and for a weight without a resource.
    """
    weight_of = _checked(resources, weights or {})
    sizes: dict[str, int] = {}
    for name in weight_of:
        for topic, loads in resources[name].items():
            sizes[topic] = max(sizes.get(topic, 0), len(loads))
    topics = sorted(sizes)
    topic_of = np.repeat(np.arange(len(topics)), [sizes[topic] for topic in topics])
    total, known = np.zeros(len(topic_of)), np.zeros(len(topic_of), bool)
    for name in sorted(weight_of):  # a fixed order, so that rounding does not depend on the caller's
        rows = (topic_loads(resources[name], topic, sizes[topic], f"resource {name!r}") for topic in topics)
        load = np.concatenate([np.empty(0), *rows])
        known |= ~np.isnan(load)
        if (whole := float(np.nansum(load))) > 0:
            total += guess(load, topic_of) / whole * weight_of[name]
    total[~known] = np.nan
    edges = np.cumsum([sizes[topic] for topic in topics[:-1]])
    return dict(zip(topics, np.split(total, edges), strict=True)) if topics else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedLoad:
    """Several sources mixed by `mix`; a `LoadSource`.

    Raises `BadGroupError` for bad weights.
    """

    sources: Mapping[str, LoadSource]
    """A source for each resource, by resource name."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """How much each resource matters; 1 by default."""

    def __post_init__(self) -> None:
        _checked(self.sources, self.weights)

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot | None:
        """Return the mixed loads, with the age of the oldest; None until every source has a snapshot.

        Raises `BadGroupError` for an invalid load.
        """
        weight_of = _checked(self.sources, self.weights)
        seen: dict[str, LoadSnapshot] = {}
        for name in weight_of:
            snapshot = self.sources[name].snapshot(topics)
            if snapshot is None:
                return None
            seen[name] = snapshot
        if not seen:
            return None
        oldest = max(seen.values(), key=lambda each: each.age_s - each.max_age_s)
        load = mix({name: of_topics(each.load, topics) for name, each in seen.items()}, weight_of)
        return LoadSnapshot(load=load, unit="share", age_s=oldest.age_s, max_age_s=oldest.max_age_s)


def _checked(resources: Collection[str], weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weight of each resource with a weight above 0."""
    for name, weight in weights.items():
        if name not in resources:
            raise BadGroupError(
                f"there is a weight for {name!r}, but no such resource; choose from {sorted(resources)}"
            )
        if not (weight >= 0 and math.isfinite(weight)):
            raise BadGroupError(f"the weight of {name!r} is {weight}; it must be a finite number of 0 or more")
    return {name: weight for name in resources if (weight := float(weights.get(name, 1.0))) > 0}
