"""Guessing loads that nobody knows.

A load that was known once is best taken for unchanged, which is the source's business: `LagLoad` keeps what it has
read. What was never known is taken for the mean of its topic's known loads, then of all known ones, then for 1.
"""

from __future__ import annotations

import numpy as np

from loadwise.assignor.model import Floats, Ints, Owners


def guess(load: Floats, topic_of: Owners | Ints) -> Floats:
    """float64[P]: ``load`` (float64[P], NaN where unknown) without gaps; ``topic_of`` int[P] numbers topics from 0."""
    known = ~np.isnan(load)
    if known.all():
        return load
    if not known.any():
        return np.ones(len(load))
    topics = int(topic_of.max()) + 1
    counts = np.bincount(topic_of[known], minlength=topics)
    sums = np.bincount(topic_of[known], load[known], topics)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), load[known].mean())
    return np.where(known, load, means[topic_of])
