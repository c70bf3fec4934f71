"""Estimate unknown loads.

A load source keeps the last load that it read, as `LagLoad` does. A load that was never read is estimated by the mean
of its topic's known loads, then by the mean of all known loads, then by 1.
"""

from __future__ import annotations

import numpy as np

from loadwise.assignor.model import Floats, Ints, Owners


def guess(load: Floats, topic_of: Owners | Ints) -> Floats:
    """float64[P]: ``load`` (NaN where unknown) with estimates; ``topic_of``, int[P], numbers topics from 0."""
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
