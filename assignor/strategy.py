"""Names on the wire: a strategy is an algorithm with a rebalance protocol.

The stock names keep Kafka's meaning, so that our members can share a group with Java's and librdkafka's. An algorithm
uses its own name for the eager protocol, and a second name for the cooperative one if it supports that. A group elects
one name, and then all members must behave alike (KIP-429).
"""

from __future__ import annotations

from dataclasses import dataclass

from loadwise.assignor.algorithms import ALGORITHMS, ON_REQUEST
from loadwise.assignor.errors import UnknownStrategyError
from loadwise.assignor.model import Assignor, Traits


@dataclass(frozen=True, slots=True)
class Strategy:
    """A name that the members of a group may elect."""

    name: str
    """The name in JoinGroup, such as ``range`` or ``cooperative-weighted``."""
    algorithm: str
    """The algorithm's name in `loadwise.assignor.algorithms`."""
    cooperative: bool
    """Whether members keep their partitions over a rebalance, which moves partitions in two rounds (KIP-429)."""
    traits: Traits
    """The inputs that the algorithm needs, and so what members send when they join."""

    @classmethod
    def of(cls, assignor: Assignor, *, cooperative: bool) -> Strategy:
        """Return the strategy of an algorithm. Raises `UnknownStrategyError` if it does not support the protocol."""
        if cooperative and not assignor.traits.cooperative:
            raise UnknownStrategyError(f"the assignor {assignor.name!r} has no cooperative form; leave cooperative out")
        name = f"cooperative-{assignor.name}" if cooperative else assignor.name
        return cls(name, assignor.name, cooperative, assignor.traits)


def strategies() -> dict[str, Strategy]:
    """Return all names on the wire of the registered algorithms with their strategies."""
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
