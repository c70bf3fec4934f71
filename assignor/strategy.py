"""Names on the wire: a strategy is an algorithm and the rebalance protocol that it is used with.

The stock names keep Kafka's meaning, so that a group may mix our members with Java's and librdkafka's. Ours have one
name per protocol, because a group elects one name and every member must then do the same (KIP-429).
"""

from __future__ import annotations

from dataclasses import dataclass

from loadwise.assignor.errors import UnknownStrategyError


@dataclass(frozen=True, slots=True)
class Strategy:
    """One name that members of a group may agree on."""

    name: str
    """The name in JoinGroup, as ``range`` or ``cooperative-weighted``."""
    algorithm: str
    """The algorithm's name in `loadwise.assignor.algorithms`."""
    cooperative: bool
    """Whether members keep what they own over a rebalance, which then moves partitions in two steps (KIP-429)."""


STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        Strategy("range", "range", cooperative=False),
        Strategy("roundrobin", "roundrobin", cooperative=False),
        Strategy("sticky", "sticky", cooperative=False),
        Strategy("cooperative-sticky", "sticky", cooperative=True),
        Strategy("weighted", "weighted", cooperative=False),
        Strategy("cooperative-weighted", "weighted", cooperative=True),
        Strategy("optimal", "optimal", cooperative=False),
    )
}


def strategy(name: str) -> Strategy:
    """Look a strategy up by its name on the wire. Raises `UnknownStrategyError`."""
    try:
        return STRATEGIES[name]
    except KeyError:
        raise UnknownStrategyError(f"no assignor is called {name!r}; there are {', '.join(STRATEGIES)}") from None
