"""The world that is simulated: true rates, members and their speeds, in pieces of constant conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from loadwise.assignor.model import Floats

Rates = Mapping[str, Floats]
"""Topic to float64[partitions]: the true arrival rate of each, in records/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What is wrong with the readings of the group's offsets."""

    late_s: int = 0
    """So old is what they tell, in whole intervals of reading."""
    missing: float = 0.0
    """This part of the partitions is missing in each."""
    wrong: float = 0.0
    """And this part of the rest has an end that is wrong: the beginning of the log, or far beyond its end."""
    lost: float = 0.0
    """This part of the readings fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of time in which nothing changes but chance."""

    start_s: int
    rates: Rates
    """Also tells which topics and partitions there are."""
    capacity: Mapping[str, float]
    """Members that are there, and what each can process in records/s, where a record costs 1."""
    cost: Mapping[str, float] = field(default_factory=dict)
    """Topic to what one of its records costs; 1 where it is not named."""
    subscriptions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Member to the topics that it reads; all where it is not named."""
    died: frozenset[str] = frozenset()
    """Members that went without leaving: the group learns of it when their sessions end."""
    stuck: frozenset[tuple[str, int]] = frozenset()
    """Partitions in which nobody gets on, as where one record is tried again and again."""
    away: frozenset[tuple[str, int]] = frozenset()
    """Partitions whose broker is away: nothing comes, nobody gets on, and no reading has them."""
    is_shift: bool = False
    """Whether the load or a member's speed has shifted here, which nobody told the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A world with a name."""

    name: str
    pieces: tuple[Piece, ...]
    end_s: int
    readings: Readings = field(default_factory=Readings)
    noise: float = 1.0
    """Variance of arrivals over their mean: 1 is Poisson."""
    stated: Mapping[str, float] = field(default_factory=dict)
    """Member to the capacity that its user gave it, in relation to those of others; measured where it is not named."""
    silent: bool = False
    """Whether members say nothing of themselves, as where they hand their records to threads."""
    notes: bool = True
    """Whether a note beside each commit tells when it was made; those of other clients have none."""

    def shortened(self, end_s: int) -> Scene:
        """The same, ended earlier."""
        return replace(self, end_s=end_s, pieces=tuple(piece for piece in self.pieces if piece.start_s < end_s))

    def hurried(self, times: int) -> Scene:
        """The same, in which everything happens so many times as soon: more of it is seen in an hour."""
        return replace(self, pieces=tuple(replace(piece, start_s=piece.start_s // times) for piece in self.pieces))

    @property
    def sizes(self) -> dict[str, int]:
        """Topic to the most partitions that it ever has, of all topics that there ever are."""
        sizes: dict[str, int] = {}
        for piece in self.pieces:
            for topic, rates in piece.rates.items():
                sizes[topic] = max(sizes.get(topic, 0), len(rates))
        return sizes


def zipf(partitions: int, total: float, exponent: float, rng: np.random.Generator) -> Floats:
    """Rates of partitions by Zipf's law, in random order."""
    weight = 1.0 / np.arange(1, partitions + 1) ** exponent
    return rng.permutation(weight / weight.sum() * total)
