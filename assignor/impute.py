"""Guessing loads that nobody knows.

A load that was known once is best taken for unchanged, which is the source's business: `LagLoad` keeps what it has
read. What was never known is taken for the mean of its topic's known loads, then of all known ones, then for 1. Where
nothing at all is known, `presume` takes the present owners for evenly loaded.
"""

from __future__ import annotations

import numpy as np

from loadwise.assignor.model import NOBODY, Floats, GroupSnapshot, Ints, Owners


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


def presume(group: GroupSnapshot) -> Floats | None:
    """float64[P]: loads by which every member that owns something is exactly as busy as its capacity; None if none is.

    This is what a leader that has no load goes by: somebody who knew more has given the owners what they have. So
    nothing is taken from one owner for the other. What nobody owns is NaN, which counts as the mean of the others, and
    members that own nothing get what a newcomer gets.
    """
    owned = group.owner != NOBODY
    if not owned.any():
        return None
    owner = group.owner[owned]
    load = np.full(group.size, np.nan)
    load[owned] = group.capacity[owner] / np.bincount(owner, minlength=len(group.members))[owner]
    return load
