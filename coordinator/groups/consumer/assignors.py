"""The server-side assignors, by the names that consumers use (``group.remote.assignor``).

Two are Kafka's, and three are ours. Kafka's ``uniform`` first balances counts and then moves few partitions, without
racks. Our ``sticky`` without racks does the same; in a tie the two may choose differently. Kafka's ``range`` equals the
client-side one exactly. ``loadwise`` is what our jar adds to Kafka's brokers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class ServerAssignor:
    """An algorithm under the name that consumers use."""

    name: str
    algorithm: str
    """The algorithm's name in `loadwise.assignor.algorithms`."""
    uses_racks: bool = False
    """Whether it gets racks."""
    is_steered: bool = False
    """Whether it follows the plan of ``loadwise steer`` instead of the algorithm: `loadwise.assignor.steered`."""

    @property
    def uses_load(self) -> bool:
        """Return whether it uses partitions' load, and assigns again when the load becomes uneven."""
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
        ServerAssignor("loadwise", "sticky", is_steered=True),
    )
}
"""All assignors by name; the first is the default."""
