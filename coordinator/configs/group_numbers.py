"""The numbers that groups can have of their own, in place of the broker's, each declared once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from loadwise.coordinator.configs.definitions import INT_MAX, ConfigType, Definition, at_least, between


@dataclass(frozen=True, slots=True)
class GroupNumber:
    """A whole number that a group can have of its own, and that the broker's setting ``group.…`` is for all others.

    Everything that is known of it stands in this declaration, and in a field of the kind's limits.
    """

    name: str
    """The group's config, as ``share.session.timeout.ms``."""
    field: str
    """The field of the limits."""
    default: int
    """Kafka's, which DescribeConfigs returns."""
    least: int
    most: int = INT_MAX
    bound: int | None = None
    """Kafka's default of `largest`; None if brokers have no bounds."""
    least_of_brokers: int | None = None
    """The least that a broker can be started with, if it is another: tests need short times."""

    @property
    def of_brokers(self) -> str:
        """Return the name of the broker's setting."""
        return f"group.{self.name}"

    @property
    def largest(self) -> str:
        """Return the name of the broker's setting for the largest value of a group."""
        return self._bound_name("max")

    @property
    def smallest(self) -> str:
        """Return the name of the broker's setting for the smallest value of a group."""
        return self._bound_name("min")

    def _bound_name(self, which: str) -> str:
        kind, _, rest = self.name.partition(".")
        return f"group.{kind}.{which}.{rest}"

    @property
    def definition(self) -> Definition:
        """Return the config of a group."""
        check = at_least(self.least) if self.most == INT_MAX else between(self.least, self.most)
        return Definition(
            name=self.name, type=ConfigType.INT, default=str(self.default), broker_config=self.of_brokers, check=check
        )


def times_of(kind: str) -> tuple[GroupNumber, ...]:
    """Return what groups of all kinds but the classic have: KIP-848, share and streams groups."""
    return (
        GroupNumber(f"{kind}.assignment.interval.ms", "assignment_interval_ms", 1000, 0, bound=15_000),
        GroupNumber(f"{kind}.heartbeat.interval.ms", "heartbeat_interval_ms", 5000, 1, bound=15_000),
        GroupNumber(f"{kind}.session.timeout.ms", "session_timeout_ms", 45_000, 1, bound=60_000),
    )


def numbers_of_group(numbers: Iterable[GroupNumber], configs: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that a group's own configs replace."""
    return {each.field: int(configs[each.name]) for each in numbers if each.name in configs}
