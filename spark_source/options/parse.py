"""Parse and check the options of ``format("loadwise")`` before any request.

Names, defaults, forms and precedence are those of Spark's Kafka integration (``KafkaSourceProvider``), plus this
source's own: ``assignor``, ``numTasks``, ``split``, ``costPerRecord``, ``commitGroup``, ``assignment.mode``,
``assignment.group``, ``reader``. Unlike Spark, it refuses an unknown option and names the nearest one. Otherwise a
misspelt ``startingOffset`` would read the whole topic.

Spark passes names in lower case and values as text. Pure: nothing here contacts Kafka or imports Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import partial

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.errors import OptionError, UnknownOptionError
from loadwise.spark_source.options.client_config import ClientConfig, java_name, translate
from loadwise.spark_source.options.connection_config import not_honoured
from loadwise.spark_source.options.ignored import STREAMING_ONLY, ignored
from loadwise.spark_source.options.membership import ASSIGNMENT_MODES, group_member
from loadwise.spark_source.options.query import (
    DEFAULT_ASSIGNOR,
    DEFAULT_GROUP_ID_PREFIX,
    DEFAULT_MAX_TRIGGER_DELAY_MS,
    DEFAULT_POLL_TIMEOUT_MS,
    DEFAULT_READER,
    EARLIEST,
    LATEST,
    LEAST_COST,
    MOST_COST,
    READERS,
    Admission,
    Assign,
    AtTimestamp,
    Bound,
    Everywhere,
    SourceOptions,
    Specific,
    Subscribe,
    SubscribePattern,
    Topics,
)
from loadwise.spark_source.options.values import by_partition, duration_ms, flag, is_int, json_object, number

NAMES = (
    "assign",
    "assignment.capacity",
    "assignment.group",
    "assignment.members",
    "assignment.mode",
    "assignment.strategy",
    "assignor",
    "commitGroup",
    "costPerRecord",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "includeHeaders",
    "kafkaConsumer.pollTimeoutMs",
    "loadBy",
    "maxRecordsPerPartition",
    "minPartitions",
    "numTasks",
    "reader",
    "split",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "subscribe",
    "subscribePattern",
)
"""The options besides ``kafka.*``."""

BATCH_ONLY = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
"""Options that a stream, which has no end, refuses, as in Spark's Kafka integration."""

REFUSED = {
    "path": "not supported; topics are named by subscribe, subscribePattern or assign",
    "topic": "names the topic to write to, and this source only reads; use subscribe",
}
"""Options that a user may expect here, and what to use instead."""


def parse(given: Mapping[str, str], *, streaming: bool = False) -> SourceOptions:
    """Parse and check the options from Spark (names in any case).

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
    topics, costs = _topics(options), _costs(options)
    starting, ending = _starting(options, streaming=streaming), _ending(options, streaming=streaming)
    _refuse_backwards(starting, ending)
    follow_group, commit_group = _follow_group(options), _commit_group(options, java)
    client = translate(java)
    member = group_member(options, java, topics, streaming=streaming)
    split = flag(options, "split", default=True)
    max_records = number(options, "maxRecordsPerPartition")
    if max_records and not split:
        raise OptionError("maxRecordsPerPartition", "cannot be kept with split=false, which leaves partitions whole")
    return SourceOptions(
        topics=topics,
        client=client,
        starting=starting,
        ending=ending,
        assignor=options.get("assignor", DEFAULT_ASSIGNOR).strip(),
        num_tasks=number(options, "numTasks"),
        min_tasks=number(options, "minPartitions") or 1,
        split=split,
        cost_per_record=costs,
        load_by=_load_by(options),
        fail_on_data_loss=flag(options, "failOnDataLoss", default=True),
        include_headers=flag(options, "includeHeaders", default=False),
        group_id_prefix=options.get("groupIdPrefix", DEFAULT_GROUP_ID_PREFIX[streaming]),
        admission=_admission(options),
        max_records_per_task=max_records,
        commit_group=commit_group if streaming else None,
        follow_group=follow_group,
        member=member,
        offset_retries=_or(number(options, "fetchOffset.numRetries", least=0), 3),
        offset_retry_interval_ms=_or(number(options, "fetchOffset.retryIntervalMs", least=0), 1000),
        poll_timeout_ms=number(options, "kafkaConsumer.pollTimeoutMs") or DEFAULT_POLL_TIMEOUT_MS,
        reader=_reader(options, client),
        reader_is_asked_for="reader" in options,
        ignored=tuple(
            ignored(
                options,
                streaming=streaming,
                follow=follow_group is not None,
                group_id=java.get("group.id", "").strip(),
                costs=costs,
                reads=partial(_may_read, topics),
            )
        ),
    )


def parse_either(given: Mapping[str, str]) -> SourceOptions:
    """Parse the options of a query that may become a batch or a stream: valid for at least one of them.

    In ``load()`` a data source cannot know which. Raises `OptionError` for errors in both.
    """
    try:
        return parse(given)
    except OptionError as in_a_batch:
        try:
            return parse(given, streaming=True)
        except OptionError as in_a_stream:
            names = {name.lower() for name in given}
            of_a_stream = any(name.lower() in names for name in STREAMING_ONLY)
            raise (in_a_stream if of_a_stream else in_a_batch) from None


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _admission(options: Mapping[str, str]) -> Admission:
    least, most = number(options, "minOffsetsPerTrigger", least=0), number(options, "maxOffsetsPerTrigger")
    if least and most and least > most:
        raise OptionError("minOffsetsPerTrigger", f"{least} is more than maxOffsetsPerTrigger, {most}")
    delay_ms = duration_ms(options, "maxTriggerDelay", default=DEFAULT_MAX_TRIGGER_DELAY_MS)
    return Admission(max_offsets=most, min_offsets=least, max_delay_ms=delay_ms)


def _commit_group(options: Mapping[str, str], java: Mapping[str, str]) -> str | None:
    if not flag(options, "commitGroup", default=False):
        return None
    if not java.get("group.id", "").strip():
        raise OptionError("commitGroup", "needs the group to commit to: set kafka.group.id")
    return java["group.id"]


def _follow_group(options: Mapping[str, str]) -> str | None:
    mode = options.get("assignment.mode", "plan").strip().lower()
    group = options.get("assignment.group", "").strip()
    if mode not in ASSIGNMENT_MODES:
        raise OptionError(
            "assignment.mode", f"must be 'plan', 'follow' or 'member', not {options['assignment.mode']!r}"
        )
    if mode == "member" and group:
        raise OptionError(
            "assignment.group", "names a group to follow; the group that a member joins is kafka.group.id"
        )
    if mode == "plan" and group:
        raise OptionError("assignment.group", "names a group to follow; set assignment.mode=follow too")
    if mode == "follow" and not group:
        raise OptionError("assignment.mode", "follow needs the group to follow: set assignment.group")
    return group or None


def _reader(options: Mapping[str, str], client: ClientConfig) -> str:
    """Return the requested reader, else batches if its client supports all settings."""
    asked = options.get("reader", "").strip().lower()
    if "reader" in options and asked not in READERS:
        raise OptionError("reader", f"must be 'batches' or 'messages', not {options['reader']!r}")
    missing = not_honoured(client.settings)
    if asked == "batches" and missing:
        names = ", ".join(java_name(name) for name in missing)
        raise OptionError("reader", f"batches are read by a client without {names}; use reader=messages")
    return asked or ("messages" if missing else DEFAULT_READER)


def _unknown(name: str) -> UnknownOptionError:
    for refused, instead in REFUSED.items():
        if refused.lower() == name.lower():
            return UnknownOptionError(refused, instead)
    names = {known.lower(): known for known in (*NAMES, *STREAMING_ONLY, "kafka.bootstrap.servers")}
    near = get_close_matches(name.lower(), names, n=1)
    hint = (
        f"did you mean {names[near[0]]}?" if near else f"there are {', '.join((*NAMES, *STREAMING_ONLY))}, and kafka.*"
    )
    return UnknownOptionError(name, f"there is no such option; {hint}")


def _topics(options: Mapping[str, str]) -> Topics:
    named = [name for name in ("subscribe", "subscribePattern", "assign") if name in options]
    if not named:
        raise OptionError("subscribe", "must be given, or subscribePattern or assign: what shall be read?")
    if len(named) > 1:
        raise OptionError(named[1], f"conflicts with {named[0]}; give only one of subscribe, subscribePattern, assign")
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
                raise OptionError(name, f"{value!r} is not a regular expression of Python: {error}") from None
            return SubscribePattern(value)
        case _:
            return Assign(_assigned(value))


def _may_read(topics: Topics, topic: str) -> bool:
    match topics:
        case Subscribe(names):
            return topic in names
        case SubscribePattern(pattern):
            return re.search(pattern, topic) is not None
        case Assign(places):
            return any(place.topic == topic for place in places)


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    form = 'must be JSON like {"topic": [0, 1]}'
    partitions: set[TopicPartition] = set()
    for topic, numbers in json_object("assign", text, form).items():
        if not isinstance(numbers, list):
            raise OptionError("assign", f"{form}; {topic!r} has {numbers!r}")
        for index in numbers:
            if not is_int(index) or index < 0:
                raise OptionError("assign", f"{form}; {index!r} is not a partition")
            partitions.add(TopicPartition(topic, index))
    if not partitions:
        raise OptionError("assign", f"names no partition: {text!r}")
    return tuple(sorted(partitions))


def _starting(options: Mapping[str, str], *, streaming: bool) -> Bound:
    strategy = options.get("startingOffsetsByTimestampStrategy", "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise OptionError("startingOffsetsByTimestampStrategy", f"must be 'error' or 'latest', not {strategy!r}")
    bound = _bound(options, "starting", LATEST if streaming else EARLIEST, latest_if_none=strategy == "latest")
    if not streaming:
        _refuse_end(bound, LATEST, "must not be the latest in a batch query, which would read nothing")
    return bound


def _ending(options: Mapping[str, str], *, streaming: bool) -> Bound:
    for name in BATCH_ONLY if streaming else ():
        if name in options:
            raise OptionError(name, "has no meaning in a streaming query, which does not end; leave it out")
    bound = _bound(options, "ending", LATEST, latest_if_none=True)
    _refuse_end(bound, EARLIEST, "must not be the earliest in a batch query, which would read nothing")
    return bound


def _bound(options: Mapping[str, str], side: str, default: int, *, latest_if_none: bool) -> Bound:
    """Parse one side of all ranges: a global timestamp wins over timestamps by partition, these over offsets."""
    name = f"{side}Timestamp"
    if name in options:
        timestamp = number(options, name, least=0)
        assert timestamp is not None
        return AtTimestamp(name, timestamp, latest_if_none)
    name = f"{side}OffsetsByTimestamp"
    if name in options:
        form = 'must be JSON like {"topic": {"0": 1700000000000}}, in ms since 1970'
        return AtTimestamp(name, by_partition(name, options[name], form, least=0), latest_if_none)
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
            return Specific(name, by_partition(name, text, form, least=EARLIEST))


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


def _load_by(options: Mapping[str, str]) -> str | None:
    known = ("records", "bytes", "cost")
    costs = "costPerRecord" in options
    if "loadBy" not in options:
        return "cost" if costs else None
    by = options["loadBy"].strip().lower()
    if by not in known:
        raise OptionError("loadBy", f"must be one of {', '.join(known)}, not {options['loadBy']!r}")
    if by == "cost" and not costs:
        raise OptionError("loadBy", "cost needs what a record of each topic costs: set costPerRecord")
    if by != "cost" and costs:
        raise OptionError("loadBy", f"{by} conflicts with costPerRecord; leave out one of them")
    return by


def _costs(options: Mapping[str, str]) -> dict[str, float]:
    name = "costPerRecord"
    if name not in options:
        return {}
    form = 'must be JSON like {"topic": 2.5}'
    costs = json_object(name, options[name], form)
    for topic, cost in costs.items():
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not LEAST_COST <= cost <= MOST_COST:
            raise OptionError(name, f"{form}, each from {LEAST_COST} to {MOST_COST}; {topic!r} has {cost!r}")
    return {topic: float(cost) for topic, cost in costs.items()}
