"""What the factories of all clients share: their arguments, and what their consumers offer beyond the client's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypedDict, TypeVar

from loadwise.assignor.clients.arguments import check_arguments, check_effect, check_names
from loadwise.assignor.clients.plug import ClientAssignor
from loadwise.assignor.clients.versions import TriedVersions
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.load.lag import LagLoad, LoadOfLag, commit_slack_s, load_of, max_poll_s
from loadwise.assignor.load.polled import PolledLoad
from loadwise.assignor.load.source import LoadSource
from loadwise.assignor.participant import Participant
from loadwise.assignor.rebalances import Rebalances
from loadwise.assignor.strategy import AssignorChoice, Strategy


class Options(TypedDict, total=False):
    """The arguments of every factory beside the client's own; `loadwise.kafka_python_consumer` explains them."""

    assignor: AssignorChoice
    capacity: float | None
    load: LoadSource | LoadOfLag | None
    lag_interval_s: float
    live: LiveSettings | bool | None
    on_decision: Callable[[Decision], None] | None


_Lag = TypeVar("_Lag", bound=LagLoad)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKind(Generic[_Lag]):
    """What differs between the clients' factories."""

    factory: str
    """The factory's name, for errors."""
    arguments: frozenset[str]
    """The arguments of the client's own consumer."""
    assignor: Callable[[Participant, Strategy], ClientAssignor]
    lag: Callable[..., _Lag]
    """Reads the group's lag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPlan(Generic[_Lag]):
    """A consumer before it is made. Nothing is connected yet."""

    topics: tuple[str, ...]
    config: Mapping[str, Any]
    """The client's own arguments."""
    participant: Participant
    lag: _Lag | None
    """Reads the group's lag; None without need."""
    plugs: Sequence[ClientAssignor]
    """The client's assignor objects, one for each strategy in order of preference."""

    @property
    def waits_for_lag(self) -> bool:
        """Whether the consumer should wait for a first reading before it joins: its own load is made of it."""
        return self.lag is not None and self.participant.leader is None


def plan(
    client: ClientKind[_Lag],
    tried: TriedVersions,
    topics: tuple[str, ...],
    config: dict[str, Any],
    *,
    group_id: str,
    assignor: AssignorChoice = "weighted",
    capacity: float | None = None,
    load: LoadSource | LoadOfLag | None = None,
    lag_interval_s: float = 5.0,
    live: LiveSettings | bool | None = None,
    on_decision: Callable[[Decision], None] | None = None,
) -> ConsumerPlan[_Lag]:
    """Check a factory's arguments and choose the assignor and its load.

    Raises what `Participant` raises, and `TypeError` or `ValueError` that names a bad argument.
    """
    check_arguments(topics, group_id, lag_interval_s, config)
    check_names(client.factory, config, client.arguments | Options.__annotations__.keys())
    if on_decision is not None and not callable(on_decision):
        raise TypeError(f"on_decision is {on_decision!r}; it must be a function of a Decision")
    config["group_id"] = group_id
    own = load if isinstance(load, PolledLoad) and live is not False else None
    source = load if isinstance(load, LoadSource) and own is None else None
    participant = Participant(assignor, capacity=capacity, rack=config.get("client_rack"), load=source)
    lag = None
    if not participant.load_aware:
        names = ", ".join(strategy.name for strategy in participant.strategies)
        check_effect(
            f"assignor={names}, which counts partitions: leave it out, or use weighted or cooperative-weighted",
            capacity=capacity,
            load=load,
            live=live or None,
            on_decision=on_decision,
        )
    elif load is not None and own is None:
        check_effect(
            "load=…, for which no rebalance is requested: leave out one of them",
            live=live or None,
            on_decision=on_decision,
        )
    if own is not None and isinstance(live, LiveSettings) and live.cost:
        raise ValueError("LiveSettings(cost=…) has no effect with load=PolledLoad(…), which defines the cost")
    if participant.load_aware and source is None:
        lag = client.lag(*topics, interval_s=lag_interval_s, **config)
        if (load is None or own) and tried.includes_installed:
            participant.lead_by(
                lag,
                True if live is None else live,
                slack_s=commit_slack_s(config),
                max_poll_s=max_poll_s(config),
                own=own,
                on_decision=on_decision,
            )
        else:
            participant.load = load_of(lag, load)
    if isinstance(participant.load, PolledLoad):
        participant.load.begin()  # the first assignment may come before a snapshot has started it
    if "session_timeout_ms" in config:
        participant.answer_within(config["session_timeout_ms"] / 1000)
    plugs = [client.assignor(participant, strategy) for strategy in participant.strategies]
    return ConsumerPlan(topics=topics, config=config, participant=participant, lag=lag, plugs=plugs)


class BalancedConsumer:
    """What a consumer of ours offers beyond its client's own."""

    _plan: ConsumerPlan[Any]

    @property
    def assignor(self) -> ClientAssignor:
        """The assignor object of the preferred name."""
        return self._plan.plugs[0]

    @property
    def rebalances(self) -> Rebalances:
        """The rebalances that this member led, and what it decided."""
        return Rebalances(self._plan.participant)

    @property
    def capacity(self) -> float:
        """The member's capacity relative to the others; a change takes effect with the next join."""
        return self._plan.participant.capacity

    @capacity.setter
    def capacity(self, capacity: float) -> None:
        self._plan.participant.capacity = capacity

    @property
    def load(self) -> LoadSource | None:
        """Where the load comes from; None if the assignor uses none."""
        return self._plan.participant.load

    @property
    def live(self) -> LiveSettings | None:
        """When this member requests a rebalance because of the load; None: never."""
        return self._plan.participant.live

    def _read_lag(self, topics: Collection[str], pattern: str | re.Pattern[str] | None) -> None:
        """Also read the lag of these topics: at once if the consumer's own load is made of it."""
        plan = self._plan
        if plan.lag is not None and plan.waits_for_lag:
            plan.lag.watch(topics, pattern=pattern)
        elif plan.lag is not None:
            plan.lag.include(topics, pattern=pattern)

    def explain(self) -> Decision | None:
        """Return the newest decision about the group's load; None while another member leads."""
        return self._plan.participant.explain()
