"""A user's own assignor: knows nothing of loadwise but the interface, and gives everything to the last member."""

from __future__ import annotations

import numpy as np

from loadwise.assignor.model import Assignment, GroupSnapshot


class LastTakesAll:
    name = "last-takes-all"

    def assign(self, group: GroupSnapshot) -> Assignment:
        return Assignment(group, np.full(group.size, len(group.members) - 1, np.int32))
