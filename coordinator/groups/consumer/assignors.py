"""The assignors on the coordinator's side, by the names that consumers ask for (``group.remote.assignor``).

Kafka's two, and two of ours. Kafka's ``uniform`` balances counts first and then moves little, without racks, which is
what our ``sticky`` does when no racks are given; among equals the two may choose differently. Kafka's ``range`` is the
client-side one, to the partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class ServerAssignor:
    """An algorithm under the name that consumers ask for."""

    name: str
    algorithm: str
    """The algorithm's name in `loadwise.assignor.algorithms`."""
    uses_racks: bool = False
    """Whether it is told racks."""

    @property
    def uses_load(self) -> bool:
        """Whether it is told the load of partitions, and asked for a new assignment when that gets uneven."""
        return _uses_load(self.algorithm)


@cache
def _uses_load(name: str) -> bool:
    from loadwise.assignor.algorithms import algorithm  # noqa: PLC0415  (numpy, for those who need it)

    return algorithm(name).traits.load


SERVER_ASSIGNORS: dict[str, ServerAssignor] = {
    assignor.name: assignor
    for assignor in (
        ServerAssignor("uniform", "sticky"),
        ServerAssignor("range", "range"),
        ServerAssignor("sticky", "sticky", uses_racks=True),
        ServerAssignor("weighted", "weighted", uses_racks=True),
    )
}
"""All of them, by name; the first is for groups whose members do not ask for one."""
