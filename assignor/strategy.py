"""Names on the wire: a strategy is an algorithm and the rebalance protocol that it is used with.

The stock names keep Kafka's meaning, so that a group may mix our members with Java's and librdkafka's. Every algorithm
has a name for the eager protocol, which is its own, and one for the cooperative protocol if it supports that: a group
elects one name, and every member must then do the same (KIP-429).
"""

from __future__ import annotations

from dataclasses import dataclass

from loadwise.assignor.algorithms import ALGORITHMS, ON_REQUEST
from loadwise.assignor.errors import UnknownStrategyError
from loadwise.assignor.model import Assignor, Traits


@dataclass(frozen=True, slots=True)
class Strategy:
    """One name that members of a group may agree on."""

    name: str
    """The name in JoinGroup, as ``range`` or ``cooperative-weighted``."""
    algorithm: str
    """The algorithm's name in `loadwise.assignor.algorithms`."""
    cooperative: bool
    """Whether members keep what they own over a rebalance, which then moves partitions in two steps (KIP-429)."""
    traits: Traits
    """What the algorithm needs to be told, and so what members send when they join."""

    @classmethod
    def of(cls, assignor: Assignor, *, cooperative: bool) -> Strategy:
        """Answer the strategy of an algorithm. Raises `UnknownStrategyError` if it does not support the protocol."""
        if cooperative and not assignor.traits.cooperative:
            raise UnknownStrategyError(f"the assignor {assignor.name!r} has no cooperative form; leave cooperative out")
        name = f"cooperative-{assignor.name}" if cooperative else assignor.name
        return cls(name, assignor.name, cooperative, assignor.traits)


def strategies() -> dict[str, Strategy]:
    """Answer every name on the wire that a registered algorithm has, with its strategy."""
    found: dict[str, Strategy] = {}
    for assignor in (ALGORITHMS | ON_REQUEST).values():
        found[assignor.name] = Strategy.of(assignor, cooperative=False)
        if assignor.traits.cooperative:
            cooperative = Strategy.of(assignor, cooperative=True)
            found[cooperative.name] = cooperative
    return found


def strategy(name: str) -> Strategy:
    """Look a strategy up by its name on the wire. Raises `UnknownStrategyError`."""
    there_are = strategies()
    try:
        return there_are[name]
    except KeyError:
        raise UnknownStrategyError(f"no assignor is called {name!r}; there are {', '.join(there_are)}") from None
