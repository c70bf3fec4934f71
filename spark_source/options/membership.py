"""The options of a stream that is a member of a group (``assignment.mode=member``). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from loadwise.assignor.strategy import strategies as known_strategies
from loadwise.spark_source.errors import OptionError
from loadwise.spark_source.options.query import Assign, GroupMember, Topics
from loadwise.spark_source.options.values import number

ASSIGNMENT_MODES = ("plan", "follow", "member")
"""Who decides what the stream reads and in which tasks."""

MEMBER_SETTINGS = ("group.instance.id", "heartbeat.interval.ms", "max.poll.interval.ms", "session.timeout.ms")
"""Settings of the Java client that a member uses; without effect for other queries."""

OF_MEMBERS = ("assignment.capacity", "assignment.members", "assignment.strategy")

REFUSED = {
    "commitGroup": "a member commits what it has processed by itself; leave it out",
    "maxTriggerDelay": "is not for a member, because others may wait for it; leave it out",
    "minOffsetsPerTrigger": "is not for a member, because others may wait for it; use a longer trigger interval",
}
MOST_MEMBERS = 64


def group_member(
    options: Mapping[str, str], java: Mapping[str, str], topics: Topics, *, streaming: bool
) -> GroupMember | None:
    """Return the settings for joining a group, None if the stream joins none. Raises `OptionError`."""
    if options.get("assignment.mode", "").strip().lower() != "member":
        for name in OF_MEMBERS:
            if name in options:
                raise OptionError(name, "is for a member of a group; set assignment.mode=member too")
        return None
    if not streaming:
        raise OptionError("assignment.mode", "member is for streams; a batch query joins no group, and may follow one")
    group = java.get("group.id", "").strip()
    if not group:
        raise OptionError("assignment.mode", "member needs the group to join: set kafka.group.id")
    if isinstance(topics, Assign):
        raise OptionError("assign", "names partitions, but a member's group assigns them; use subscribe")
    for name, problem in REFUSED.items():
        if name in options:
            raise OptionError(name, problem)
    _refuse_what_librdkafka_alone_has(java)
    members = number(options, "assignment.members") or 1
    if members > MOST_MEMBERS:
        raise OptionError("assignment.members", f"must be at most {MOST_MEMBERS}, not {members}")
    strategies = tuple(filter(None, map(str.strip, options.get("assignment.strategy", "weighted").split(","))))
    if not strategies:
        raise OptionError("assignment.strategy", "is empty; name one that all members of the group have, as weighted")
    there_are = known_strategies()
    for name in strategies:
        if name not in there_are:
            near = get_close_matches(name, there_are, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(there_are)}"
            raise OptionError("assignment.strategy", f"there is no {name!r}; {hint}")
    settings = {name: java[name].strip() for name in MEMBER_SETTINGS if java.get(name, "").strip()}
    for name, value in settings.items():
        if name.endswith(".ms") and not (value.isdecimal() and int(value)):
            raise OptionError(f"kafka.{name}", f"must be a whole number above 0, not {value!r}")
    return GroupMember(
        group=group, members=members, strategies=strategies, capacity=_capacity(options), settings=settings
    )


def _refuse_what_librdkafka_alone_has(java: Mapping[str, str]) -> None:
    mechanism = java.get("sasl.mechanism", "").strip().upper()
    if java.get("security.protocol", "").strip().upper().startswith("SASL_") and mechanism == "OAUTHBEARER":
        raise OptionError(
            "kafka.sasl.mechanism", "a member of a group cannot log in with OAUTHBEARER; use PLAIN or SCRAM"
        )
    if "ssl.keystore.location" in java and java.get("ssl.keystore.type", "").strip().upper() == "PKCS12":
        raise OptionError(
            "kafka.ssl.keystore.type",
            "a member of a group cannot read PKCS12; use PEM, which openssl pkcs12 makes of it",
        )


def _capacity(options: Mapping[str, str]) -> float | None:
    if "assignment.capacity" not in options:
        return None
    try:
        capacity = float(options["assignment.capacity"])
    except ValueError:
        capacity = 0.0
    if not 1e-9 <= capacity <= 1e9:
        given = options["assignment.capacity"]
        raise OptionError("assignment.capacity", f"must be a number from 1e-9 to 1e9, not {given!r}")
    return capacity
