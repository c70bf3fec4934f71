"""The options of a stream that is a member of a group (``assignment.mode=member``). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from loadwise.assignor.strategy import StrategyName
from loadwise.assignor.strategy import strategies as known_strategies
from loadwise.nearest import near_or_all
from loadwise.spark_source.errors import OptionError
from loadwise.spark_source.options.declared import CAPACITY, MEMBERS, MODE, OPTIONS, STRATEGY, Of
from loadwise.spark_source.options.topics import Assign, Topics
from loadwise.spark_source.options.values import whole_number

MEMBER_SETTINGS = ("group.instance.id", "heartbeat.interval.ms", "max.poll.interval.ms", "session.timeout.ms")
"""Settings of the Java client that a member uses; without effect for other queries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A stream's settings for joining a group."""

    group: str
    """``kafka.group.id``."""
    members: int = MEMBERS.default
    """``assignment.members``: the number of members."""
    strategies: tuple[StrategyName, ...] = ("weighted",)
    """``assignment.strategy``: in order of preference; the group uses the first that all of its members have."""
    capacity: float | None = None
    """``assignment.capacity``: the whole stream's capacity relative to the others; None: it is measured."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of group members, by Kafka's names (the same in librdkafka)."""


def group_member(
    options: Mapping[str, str], java: Mapping[str, str], topics: Topics, *, streaming: bool
) -> GroupMember | None:
    """Return the settings for joining a group, None if the stream joins none. Raises `OptionError`."""
    given = [option for option in OPTIONS.values() if option.name in options]
    if MODE.read(options) != "member":
        for option in given:
            if option.of is Of.MEMBERS:
                raise OptionError(option.name, "is for a member of a group; set assignment.mode=member too")
        return None
    if not streaming:
        raise OptionError(MODE.name, "member is for streams; a batch query joins no group, and may follow one")
    group = java.get("group.id", "").strip()
    if not group:
        raise OptionError(MODE.name, "member needs the group to join: set kafka.group.id")
    if isinstance(topics, Assign):
        raise OptionError("assign", "names partitions, but a member's group assigns them; use subscribe")
    for option in given:
        if option.for_members:
            raise OptionError(option.name, option.for_members)
    _refuse_what_librdkafka_alone_has(java)
    settings = {name: java[name].strip() for name in MEMBER_SETTINGS if java.get(name, "").strip()}
    for name, value in settings.items():
        if name.endswith(".ms"):
            whole_number()(f"kafka.{name}", value)
    return GroupMember(
        group=group,
        members=MEMBERS.read(options),
        strategies=_strategies(STRATEGY.read(options)),
        capacity=CAPACITY.read(options),
        settings=settings,
    )


def _strategies(given: str) -> tuple[StrategyName, ...]:
    names = tuple(filter(None, map(str.strip, given.split(","))))
    if not names:
        raise OptionError(STRATEGY.name, "is empty; name one that all members of the group have, such as weighted")
    known = known_strategies()
    for name in names:
        if name not in known:
            raise OptionError(STRATEGY.name, f"there is no {name!r}{near_or_all(name, known)}")
    return cast("tuple[StrategyName, ...]", names)


def _refuse_what_librdkafka_alone_has(java: Mapping[str, str]) -> None:
    mechanism = java.get("sasl.mechanism", "").strip().upper()
    if java.get("security.protocol", "").strip().upper().startswith("SASL_") and mechanism == "OAUTHBEARER":
        raise OptionError(
            "kafka.sasl.mechanism", "a member of a group cannot log in with OAUTHBEARER; use PLAIN or SCRAM"
        )
    if "ssl.keystore.location" in java and java.get("ssl.keystore.type", "").strip().upper() == "PKCS12":
        raise OptionError(
            "kafka.ssl.keystore.type",
            "a member of a group cannot read PKCS12; use PEM; openssl pkcs12 converts it",
        )
