"""What a query asks for: the options of ``format("loadwise")``, parsed and checked, before anything is looked up.

Names, defaults, forms and ranks are those of Spark's Kafka integration (``KafkaSourceProvider``, batch queries), plus
this source's own ``assignor``, ``numTasks``, ``split`` and ``costPerRecord``. Unlike there, an option that does not
exist is refused, with the nearest that does: a misspelt ``startingOffset`` must not read the whole topic instead.

Spark hands the names over in lower case, values as text. Pure: nothing here asks Kafka or imports Spark.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeAlias

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.client_config import ClientConfig, translate
from loadwise.spark_source.errors import OptionError, UnknownOptionError

LATEST = -1
"""Kafka's and Spark's number for the end of a partition."""
EARLIEST = -2
"""Kafka's and Spark's number for the beginning of a partition."""

NAMES = (
    "assign",
    "assignor",
    "costPerRecord",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    "groupIdPrefix",
    "includeHeaders",
    "kafkaConsumer.pollTimeoutMs",
    "minPartitions",
    "numTasks",
    "split",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "subscribe",
    "subscribePattern",
)
"""The options, beside ``kafka.*``."""

STREAMING_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
"""Options that say nothing about a batch query: named in a warning, as Spark's Kafka integration does."""

REFUSED = {
    "fetchOffset.numRetries": "not supported; the client retries until kafka.default.api.timeout.ms has passed",
    "fetchOffset.retryIntervalMs": "not supported; set kafka.retry.backoff.ms",
    "maxRecordsPerPartition": "not supported yet; set numTasks",
    "path": "not supported; topics are named by subscribe, subscribePattern or assign",
    "topic": "names the topic to write to, and this source only reads; use subscribe",
}
"""Options that one could expect here, and what to do instead."""


DEFAULT_ASSIGNOR = "weighted"
DEFAULT_GROUP_ID_PREFIX = "spark-kafka-relation"
DEFAULT_POLL_TIMEOUT_MS = 120_000


@dataclass(frozen=True, slots=True)
class Subscribe:
    """All partitions of these topics (``subscribe``)."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """All partitions of the topics whose whole name matches (``subscribePattern``)."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Assign:
    """These partitions and no others (``assign``)."""

    partitions: tuple[TopicPartition, ...]


Topics: TypeAlias = Subscribe | SubscribePattern | Assign


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The same end of every partition."""

    option: str
    """The option that says so, for messages."""
    offset: int
    """`EARLIEST` or `LATEST`."""


@dataclass(frozen=True, slots=True)
class Specific:
    """An offset for each partition; `EARLIEST` and `LATEST` may stand for one."""

    option: str
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """The first record of each partition that is as young as a moment, in ms since the epoch."""

    option: str
    timestamp_ms: int | Mapping[TopicPartition, int]
    latest_if_none: bool
    """What a partition without such a record gives: its end, or an error."""


Bound: TypeAlias = Everywhere | Specific | AtTimestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Everything that a query says. Its text shows no secret."""

    topics: Topics
    starting: Bound
    ending: Bound
    client: ClientConfig
    assignor: str = DEFAULT_ASSIGNOR
    """Name of an algorithm, or the dotted name of a class of the user's that implements `Assignor`."""
    num_tasks: int | None = None
    """How many members the plan has; None: one for each partition that has something to read."""
    split: bool = True
    """Whether a partition may be cut into offset ranges for several tasks."""
    cost_per_record: Mapping[str, float] = field(default_factory=dict)
    """What a record of a topic costs relative to the others'; 1 for topics that are not named."""
    fail_on_data_loss: bool = True
    include_headers: bool = False
    group_id_prefix: str = DEFAULT_GROUP_ID_PREFIX
    poll_timeout_ms: int = DEFAULT_POLL_TIMEOUT_MS
    """How long a task waits for a record before it fails. Spark's default is ``spark.network.timeout``: 120 s."""
    ignored: tuple[str, ...] = ()
    """Options that were given and change nothing, each with the reason."""


def parse(given: Mapping[str, str]) -> SourceOptions:
    """Check the options that Spark hands over (names in any case) and say what they mean.

    Raises `OptionError`; its text begins with the name of the option.
    """
    spelling = {name.lower(): name for name in (*NAMES, *STREAMING_ONLY)}
    options: dict[str, str] = {}
    java: dict[str, str] = {}
    for name, value in given.items():
        lower = name.lower()
        if lower.startswith("kafka."):
            java[lower.removeprefix("kafka.")] = value
        elif lower in spelling:
            options[spelling[lower]] = value
        else:
            raise _unknown(name)
    ignored = [f"{name} (says nothing about a batch query)" for name in STREAMING_ONLY if name in options]
    if "groupIdPrefix" in options and "group.id" in java:
        ignored.append("groupIdPrefix (kafka.group.id is given)")
    starting, ending = _starting(options), _ending(options)
    _refuse_backwards(starting, ending)
    return SourceOptions(
        topics=_topics(options),
        client=translate(java),
        starting=starting,
        ending=ending,
        assignor=options.get("assignor", DEFAULT_ASSIGNOR).strip(),
        num_tasks=_number(options, "numTasks") or _number(options, "minPartitions"),
        split=_flag(options, "split", default=True),
        cost_per_record=_costs(options),
        fail_on_data_loss=_flag(options, "failOnDataLoss", default=True),
        include_headers=_flag(options, "includeHeaders", default=False),
        group_id_prefix=options.get("groupIdPrefix", DEFAULT_GROUP_ID_PREFIX),
        poll_timeout_ms=_number(options, "kafkaConsumer.pollTimeoutMs") or DEFAULT_POLL_TIMEOUT_MS,
        ignored=tuple(ignored),
    )


def _unknown(name: str) -> UnknownOptionError:
    for refused, instead in REFUSED.items():
        if refused.lower() == name.lower():
            return UnknownOptionError(refused, instead)
    names = {known.lower(): known for known in (*NAMES, "kafka.bootstrap.servers")}
    near = get_close_matches(name.lower(), names, n=1)
    hint = f"did you mean {names[near[0]]}?" if near else f"there are {', '.join(NAMES)}, and kafka.*"
    return UnknownOptionError(name, f"there is no such option; {hint}")


def _topics(options: Mapping[str, str]) -> Topics:
    named = [name for name in ("subscribe", "subscribePattern", "assign") if name in options]
    if not named:
        raise OptionError("subscribe", "must be given, or subscribePattern or assign: what shall be read?")
    if len(named) > 1:
        raise OptionError(named[1], f"goes against {named[0]}; give only one of subscribe, subscribePattern and assign")
    name = named[0]
    value = options[name]
    match name:
        case "subscribe":
            topics = tuple(dict.fromkeys(topic.strip() for topic in value.split(",") if topic.strip()))
            if not topics:
                raise OptionError(name, f"names no topic: {value!r}")
            return Subscribe(topics)
        case "subscribePattern":
            if not value.strip():
                raise OptionError(name, "is empty")
            try:
                re.compile(value)
            except re.error as error:
                raise OptionError(name, f"{value!r} is no regular expression of Python's: {error}") from None
            return SubscribePattern(value)
        case _:
            return Assign(_assigned(value))


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    form = 'must be JSON like {"topic": [0, 1]}'
    partitions = {
        TopicPartition(topic, number)
        for topic, numbers in _json_object("assign", text, form).items()
        for number in (numbers if isinstance(numbers, list) else [numbers])
    }
    for _, number in partitions:
        if not _is_int(number) or number < 0:
            raise OptionError("assign", f"{form}; {number!r} is no partition")
    if not partitions:
        raise OptionError("assign", f"names no partition: {text!r}")
    return tuple(sorted(partitions))


def _starting(options: Mapping[str, str]) -> Bound:
    strategy = options.get("startingOffsetsByTimestampStrategy", "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise OptionError("startingOffsetsByTimestampStrategy", f"must be 'error' or 'latest', not {strategy!r}")
    bound = _bound(options, "starting", EARLIEST, latest_if_none=strategy == "latest")
    _refuse_end(bound, LATEST, "must not be the latest in a batch query, which would read nothing")
    return bound


def _ending(options: Mapping[str, str]) -> Bound:
    bound = _bound(options, "ending", LATEST, latest_if_none=True)
    _refuse_end(bound, EARLIEST, "must not be the earliest in a batch query, which would read nothing")
    return bound


def _bound(options: Mapping[str, str], side: str, default: int, *, latest_if_none: bool) -> Bound:
    """One side of all ranges: a timestamp for all goes before timestamps by partition, and these before offsets."""
    name = f"{side}Timestamp"
    if name in options:
        timestamp = _number(options, name, least=0)
        assert timestamp is not None
        return AtTimestamp(name, timestamp, latest_if_none)
    name = f"{side}OffsetsByTimestamp"
    if name in options:
        form = 'must be JSON like {"topic": {"0": 1700000000000}}, in ms since 1970'
        return AtTimestamp(name, _by_partition(name, options[name], form, least=0), latest_if_none)
    name = f"{side}Offsets"
    text = options.get(name, "").strip()
    match text.lower():
        case "":
            if name in options:
                raise OptionError(name, "is empty")
            return Everywhere(name, default)
        case "earliest":
            return Everywhere(name, EARLIEST)
        case "latest":
            return Everywhere(name, LATEST)
        case _:
            form = 'must be \'earliest\', \'latest\' or JSON like {"topic": {"0": 23, "1": -2}}'
            return Specific(name, _by_partition(name, text, form, least=EARLIEST))


def _refuse_end(bound: Bound, end: int, why: str) -> None:
    if isinstance(bound, Everywhere) and bound.offset == end:
        raise OptionError(bound.option, why)
    if isinstance(bound, Specific):
        for (topic, partition), offset in bound.offsets.items():
            if offset == end:
                raise OptionError(bound.option, f"{offset} for {topic}-{partition} {why}")


def _refuse_backwards(starting: Bound, ending: Bound) -> None:
    if isinstance(starting, Specific) and isinstance(ending, Specific):
        for place, start in starting.offsets.items():
            end = ending.offsets.get(place, LATEST)
            if start > end >= 0:
                where = f"{place.topic}-{place.partition}"
                raise OptionError(starting.option, f"{where} starts at {start}, behind {end}, its {ending.option}")


def _by_partition(option: str, text: str, form: str, *, least: int) -> dict[TopicPartition, int]:
    numbers: dict[TopicPartition, int] = {}
    for topic, partitions in _json_object(option, text, form).items():
        if not isinstance(partitions, dict):
            raise OptionError(option, f"{form}; {topic!r} has {partitions!r}")
        for partition, number in partitions.items():
            if not re.fullmatch(r"\d+", partition, re.ASCII) or not _is_int(number) or number < least:
                raise OptionError(option, f"{form}; {topic!r} has {{{partition!r}: {number!r}}}")
            numbers[TopicPartition(topic, int(partition))] = number
    return numbers


def _costs(options: Mapping[str, str]) -> dict[str, float]:
    name = "costPerRecord"
    if name not in options:
        return {}
    form = 'must be JSON like {"topic": 2.5}'
    costs = _json_object(name, options[name], form)
    for topic, cost in costs.items():
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 < cost < math.inf:
            raise OptionError(name, f"{form}, each above 0; {topic!r} has {cost!r}")
    return {topic: float(cost) for topic, cost in costs.items()}


def _json_object(option: str, text: str, form: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise OptionError(option, f"{form}, not {text!r}")
    return value


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(options: Mapping[str, str], name: str, *, least: int = 1) -> int | None:
    if name not in options:
        return None
    text = options[name].strip()
    if not re.fullmatch(r"\d+", text, re.ASCII) or int(text) < least:
        raise OptionError(name, f"must be a whole number of at least {least}, not {options[name]!r}")
    return int(text)


def _flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise OptionError(name, f"must be 'true' or 'false', not {options[name]!r}")
    return text == "true"
