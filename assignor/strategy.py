"""Names on the wire: a strategy is an algorithm with a rebalance protocol.

The stock names keep Kafka's meaning, so that our members can share a group with Java's and librdkafka's. An algorithm
uses its own name for the eager protocol, and a second name for the cooperative one if it supports that. A group elects
one name, and then all members must behave alike (KIP-429).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from loadwise.assignor.algorithms import ALGORITHMS, ON_REQUEST, algorithm
from loadwise.assignor.errors import UnknownAssignorError
from loadwise.assignor.model import Assignor, Traits
from loadwise.nearest import did_you_mean


@dataclass(frozen=True, slots=True)
class Cooperative:
    """The cooperative form of an assignor with parameters, such as ``Cooperative(Weighted(epsilon=0.02))``."""

    assignor: Assignor


StrategyName: TypeAlias = Literal[
    "range", "roundrobin", "sticky", "cooperative-sticky", "weighted", "cooperative-weighted", "optimal"
]
"""The names of loadwise's assignors, for type checkers."""
AssignorChoice: TypeAlias = "StrategyName | Assignor | Cooperative | Sequence[StrategyName | Assignor | Cooperative]"
"""An assignor's name, an assignor with its own parameters, or a list of these in order of preference."""
AnyChoice: TypeAlias = "str | Assignor | Cooperative | Sequence[str | Assignor | Cooperative]"
"""The same with a name that only the run shows, as from a configuration."""


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
        """Return the strategy of an algorithm. Raises `UnknownAssignorError` if it does not support the protocol."""
        if cooperative and not assignor.traits.cooperative:
            raise UnknownAssignorError(
                f"the assignor {assignor.name!r} has no cooperative form; use it without Cooperative()"
            )
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
    """Look a strategy up by its name on the wire. Raises `UnknownAssignorError`."""
    there_are = strategies()
    try:
        return there_are[name]
    except KeyError:
        near = did_you_mean(name, there_are)
        raise UnknownAssignorError(
            f"no assignor is called {name!r}{near}; choose from {', '.join(there_are)}"
        ) from None


def chosen(assignor: AnyChoice) -> dict[Strategy, Assignor]:
    """Return the chosen strategies in order, each with its algorithm.

    Raises `UnknownAssignorError`, and `TypeError` for something that is no assignor.
    """
    several = assignor if isinstance(assignor, Sequence) and not isinstance(assignor, str) else [assignor]
    algorithms: dict[Strategy, Assignor] = {}
    for each in several:
        if isinstance(each, str):
            strategy_ = strategy(each)
            made = algorithm(strategy_.algorithm)
        else:
            made = each.assignor if isinstance(each, Cooperative) else each
            if isinstance(made, type) or not isinstance(getattr(made, "name", None), str):
                raise TypeError(
                    f"assignor is {assignor!r}; it must be the name of an assignor, an object such as Weighted(), or a"
                    " list of these"
                )
            if not isinstance(getattr(made, "traits", None), Traits):
                raise TypeError(
                    f"the assignor {made.name!r} has no traits; give its class a line like: traits = Traits(load=True)"
                )
            strategy_ = Strategy.of(made, cooperative=isinstance(each, Cooperative))
        if strategy_ in algorithms:
            raise UnknownAssignorError(f"assignor names {strategy_.name!r} twice; name each assignor once")
        algorithms[strategy_] = made
    if not algorithms:
        raise UnknownAssignorError("assignor is an empty list; name at least one assignor, such as 'weighted'")
    return algorithms
