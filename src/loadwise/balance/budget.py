"""Keeps what a plan moves within a number of bytes: of all changes, those that help most for their bytes. Pure."""

from __future__ import annotations

import numpy as np

from loadwise.balance.bounds import LEAST, Bounds
from loadwise.balance.placement import Placement

_ALIKE = 0.9
"""A change is made if it still helps nearly as much as before the others were made."""


def within(found: Placement, bounds: Bounds, most_bytes: float) -> Placement:
    """The placement that the most useful changes lead to, as long as each helps and the bytes suffice."""
    if found.moved_bytes() <= most_bytes:
        return found
    kept, changed = found.copy(), found.changed()
    for partition in changed.tolist():
        kept.put(partition, found.before[partition])
    left, made = most_bytes, True
    while made:
        moved = found.moved_bytes_of(changed)
        gains = -kept.change_of_excess(changed, found.replicas[changed], bounds)
        a_byte = np.where((gains > LEAST) & (moved <= left), gains / np.maximum(moved, 1.0), 0.0)
        taken = []
        for index in np.argsort(-a_byte, kind="stable").tolist():
            if a_byte[index] <= 0.0:
                break
            one = changed[[index]]
            gain = -kept.change_of_excess(one, found.replicas[one], bounds)[0]
            if moved[index] <= left and gain >= _ALIKE * gains[index]:
                kept.put(int(one[0]), found.replicas[one[0]])
                left -= float(moved[index])
                taken.append(index)
        changed, made = np.delete(changed, taken), bool(taken)
    return kept
