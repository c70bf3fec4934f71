"""The algorithms: one module with one `Assignor` each, pure functions of a `GroupSnapshot`.

To add one, add a module here and a line in `ALGORITHMS`; the contract tests find it there. The algorithms in
`ON_REQUEST` are used only if the user names them.
"""

from __future__ import annotations

from loadwise.assignor.algorithms.optimal import Optimal
from loadwise.assignor.algorithms.range import Range
from loadwise.assignor.algorithms.roundrobin import RoundRobin
from loadwise.assignor.algorithms.sticky import Sticky
from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.errors import UnknownAssignorError
from loadwise.assignor.model import Assignor

ALGORITHMS: dict[str, Assignor] = {
    assignor.name: assignor for assignor in (Range(), RoundRobin(), Sticky(), Weighted())
}
"""Every algorithm for groups of any size, with its default parameters, by name."""

ON_REQUEST: dict[str, Assignor] = {assignor.name: assignor for assignor in (Optimal(),)}
"""Algorithms for small groups, used only by name."""


def algorithm(name: str) -> Assignor:
    """Return the algorithm of this name. Raises `UnknownAssignorError`."""
    there_are = ALGORITHMS | ON_REQUEST
    try:
        return there_are[name]
    except KeyError:
        raise UnknownAssignorError(f"no assignor is called {name!r}; choose from {', '.join(there_are)}") from None
