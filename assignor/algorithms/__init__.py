"""The algorithms, each a module with one `Assignor`: pure functions of a `GroupSnapshot`.

A new one is a module here and a line in `ALGORITHMS`; the contract tests pick it up from there.
"""

from __future__ import annotations

from loadwise.assignor.algorithms.range import Range
from loadwise.assignor.algorithms.roundrobin import RoundRobin
from loadwise.assignor.algorithms.sticky import Sticky
from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.errors import UnknownStrategyError
from loadwise.assignor.model import Assignor

ALGORITHMS: dict[str, Assignor] = {
    assignor.name: assignor for assignor in (Range(), RoundRobin(), Sticky(), Weighted())
}
"""Every algorithm with its default parameters, by name."""


def algorithm(name: str) -> Assignor:
    """Look an algorithm up by its name. Raises `UnknownStrategyError`."""
    try:
        return ALGORITHMS[name]
    except KeyError:
        raise UnknownStrategyError(f"no algorithm is called {name!r}; there are {', '.join(ALGORITHMS)}") from None
