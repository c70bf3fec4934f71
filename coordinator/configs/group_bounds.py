"""The bounds of a group's own configs, from the brokers' settings. Mirrors ``GroupConfig.validate``.

Kafka's lower bounds, such as 45 seconds for a session timeout, count only if a broker was started with such a setting:
tests need short times.
"""

from __future__ import annotations

from collections.abc import Mapping

from loadwise.coordinator.configs.definitions import BadConfigError

_MOST: Mapping[str, tuple[str, int]] = {
    **{
        f"{kind}.{name}": (f"group.{kind}.max.{name}", most)
        for kind in ("consumer", "share", "streams")
        for name, most in (
            ("assignment.interval.ms", 15_000),
            ("heartbeat.interval.ms", 15_000),
            ("session.timeout.ms", 60_000),
        )
    },
    "share.delivery.count.limit": ("group.share.max.delivery.count.limit", 10),
    "share.partition.max.record.locks": ("group.share.max.partition.max.record.locks", 4000),
    "share.record.lock.duration.ms": ("group.share.max.record.lock.duration.ms", 60_000),
}
"""By a group's config the broker's setting for the largest value, and Kafka's default of that."""
BOUNDS = frozenset(name for setting, _ in _MOST.values() for name in (setting, setting.replace(".max.", ".min.", 1)))
"""The brokers' settings for the largest and the smallest values."""


def check_bounds(configs: Mapping[str, str], as_started: Mapping[str, str]) -> None:
    """Raise `BadConfigError` for a value that is too large or too small.

    ``configs`` are those of a group, which are numbers where they have to be. ``as_started`` are the settings that the
    brokers were started with, by Kafka's names.
    """
    for name, value in configs.items():
        if name not in _MOST:
            continue
        setting, default = _MOST[name]
        most = int(as_started.get(setting, default))
        if int(value) > most:
            raise BadConfigError(f"{name} must be less than or equal to {setting}, which is {most}")
        lower = setting.replace(".max.", ".min.", 1)
        if lower in as_started and int(value) < int(as_started[lower]):
            raise BadConfigError(f"{name} must be greater than or equal to {lower}, which is {as_started[lower]}")
