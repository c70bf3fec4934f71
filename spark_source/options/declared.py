"""The options of ``format("loadwise")``, each declared once: name, type, form, default, effect and line in the guide.

Names, defaults and forms are those of Spark's Kafka integration (``KafkaSourceProvider``), and this source's own.
To add an option, declare it here and give it a field in `loadwise.spark_source.options.query`. Refusals, warnings and
the reference (``make docs``) follow by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.options.values import (
    Form,
    by_partition,
    by_topic,
    duration_ms,
    flag,
    one_of,
    real_number,
    text,
    verbatim,
    whole_number,
)

T = TypeVar("T")


class Of(Enum):
    """The queries that an option is for."""

    ALL = "all"
    BATCHES = "batch"
    """Refused in a stream, which has no end, as in Spark's Kafka integration."""
    STREAMS = "stream"
    """A warning in a batch."""
    MEMBERS = "member"
    """Refused without ``assignment.mode=member``."""
    PLANS = "plan"
    """Without effect if a followed group's assignment is the plan."""


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """An option besides ``kafka.*``."""

    name: str
    form: Form[T]
    default: T
    meaning: str
    """Its line in the guide."""
    shown_default: str = ""
    """The default in the guide, if it is no fixed value."""
    of: Of = Of.ALL
    behind: tuple[str, ...] = ()
    """Options that win over this one."""
    for_members: str = ""
    """Why a member of a group refuses it, and what to do instead."""

    def read(self, options: Mapping[str, str]) -> T:
        """Return its value, or the default. Raises `OptionError`."""
        return self.form(self.name, options[self.name]) if self.name in options else self.default


_TIMES = by_partition('must be JSON like {"topic": {"0": 1700000000000}}, in ms since 1970', 0)

_COSTS = by_topic(1e-9, 1e9)
"""Floating point can add loads that differ this much."""

SUBSCRIBE: Option[str | None] = Option("subscribe", verbatim, None, "topic names; one of the first three is required")
SUBSCRIBE_PATTERN: Option[str | None] = Option(
    "subscribePattern", verbatim, None, "a Python regular expression that matches anywhere in the name"
)
ASSIGN: Option[str | None] = Option("assign", verbatim, None, '`{"topic": [0, 1]}`')
_STARTS = ("startingTimestamp", "startingOffsetsByTimestamp")
STARTING_TIMESTAMP: Option[int | None] = Option(
    "startingTimestamp", whole_number(0), None, "where to start, in ms since 1970. A checkpoint overrides all of these"
)
STARTING_BY_TIMESTAMP: Option[dict[TopicPartition, int] | None] = Option(
    "startingOffsetsByTimestamp", _TIMES, None, '`{"topic": {"0": 1700000000000}}`', behind=_STARTS[:1]
)
STARTING_OFFSETS: Option[str | None] = Option(
    "startingOffsets",
    text,
    None,
    '`earliest`, `latest` (streams only), or `{"topic": {"0": 23, "1": -2}}` for all partitions'
    " (-2: earliest, -1: latest)",
    shown_default="`earliest`; a stream: `latest`",
    behind=_STARTS,
)
TIMESTAMP_STRATEGY: Option[str] = Option(
    "startingOffsetsByTimestampStrategy",
    one_of("error", "latest"),
    "error",
    "what to do for partitions without a record that recent",
)
_ENDS = ("endingTimestamp", "endingOffsetsByTimestamp")
ENDING_TIMESTAMP: Option[int | None] = Option("endingTimestamp", whole_number(0), None, "where to end", of=Of.BATCHES)
ENDING_BY_TIMESTAMP: Option[dict[TopicPartition, int] | None] = Option(
    "endingOffsetsByTimestamp", _TIMES, None, "like `startingOffsetsByTimestamp`", of=Of.BATCHES, behind=_ENDS[:1]
)
ENDING_OFFSETS: Option[str | None] = Option(
    "endingOffsets", text, None, "like `startingOffsets`", of=Of.BATCHES, behind=_ENDS, shown_default="`latest`"
)
MAX_OFFSETS: Option[int | None] = Option(
    "maxOffsetsPerTrigger",
    whole_number(),
    None,
    "approximate maximum number of offsets in a micro-batch",
    of=Of.STREAMS,
)
MIN_OFFSETS: Option[int | None] = Option(
    "minOffsetsPerTrigger",
    whole_number(0),
    None,
    "wait for this many offsets, up to `maxTriggerDelay`; not with `availableNow`",
    of=Of.STREAMS,
    for_members="is not for a member, because others may wait for it; use a longer trigger interval",
)
MAX_DELAY: Option[int] = Option(
    "maxTriggerDelay",
    duration_ms,
    15 * 60_000,
    "the maximum wait for `minOffsetsPerTrigger`",
    shown_default="`15m`",
    of=Of.STREAMS,
    for_members="is not for a member, because others may wait for it; leave it out",
)
FAIL_ON_DATA_LOSS: Option[bool] = Option(
    "failOnDataLoss", flag, True, "whether missing offsets fail the query, or only cause a warning"
)
INCLUDE_HEADERS: Option[bool] = Option("includeHeaders", flag, False, "add the column `headers`")
MIN_PARTITIONS: Option[int] = Option(
    "minPartitions",
    whole_number(),
    1,
    "minimum number of tasks, if `numTasks` is not set",
    of=Of.PLANS,
    behind=("numTasks",),
)
MAX_RECORDS: Option[int | None] = Option(
    "maxRecordsPerPartition",
    whole_number(),
    None,
    "maximum number of records in a task; overrides `loadBy=bytes`",
    of=Of.PLANS,
)
OFFSET_RETRIES: Option[int] = Option(
    "fetchOffset.numRetries",
    whole_number(0),
    3,
    "number of attempts for a request about offsets, each for `kafka.default.api.timeout.ms`; 0 means 1",
)
OFFSET_RETRY_INTERVAL: Option[int] = Option(
    "fetchOffset.retryIntervalMs", whole_number(0), 1000, "the pause after each of these attempts"
)
GROUP_ID_PREFIX: Option[str | None] = Option(
    "groupIdPrefix",
    verbatim,
    None,
    "prefix of a group id that the client is given but never uses",
    shown_default="`spark-kafka-relation`; a stream: `spark-kafka-source`",
)
POLL_TIMEOUT: Option[int] = Option(
    "kafkaConsumer.pollTimeoutMs", whole_number(), 120_000, "a task fails after this time without a record"
)
ASSIGNOR: Option[str] = Option(
    "assignor",
    text,
    "weighted",
    "`weighted`, `range`, `roundrobin`, `sticky`, or your own as `module.Class`",
    of=Of.PLANS,
)
NUM_TASKS: Option[int | None] = Option(
    "numTasks",
    whole_number(),
    None,
    "number of tasks that share the records; empty tasks are left out",
    shown_default="[by slots and records](#how-many-tasks)",
    of=Of.PLANS,
)
SPLIT: Option[bool] = Option("split", flag, True, "whether partitions may be cut into offset ranges", of=Of.PLANS)
COST_PER_RECORD: Option[dict[str, float] | None] = Option(
    "costPerRecord",
    _COSTS,
    None,
    'weight of a record in each topic: `{"images": 20}`',
    shown_default="1 each",
    of=Of.PLANS,
)
LOAD_BY: Option[str | None] = Option(
    "loadBy",
    one_of("records", "bytes", "cost"),
    None,
    "what is divided evenly among tasks: `records`, `cost` or [`bytes`](#even-in-bytes)",
    shown_default="`cost` with `costPerRecord`; else `bytes` above 5,000 records, `records` below",
    of=Of.PLANS,
)
READER: Option[str | None] = Option(
    "reader", one_of("batches", "messages"), None, "see [two readers](#two-readers)", shown_default="`batches`"
)
COMMIT_GROUP: Option[bool] = Option(
    "commitGroup",
    flag,
    False,
    "commit the progress to `kafka.group.id`, for lag tools",
    of=Of.STREAMS,
    for_members="a member commits what it has processed by itself; leave it out",
)
MODE: Option[str] = Option(
    "assignment.mode",
    one_of("plan", "follow", "member"),
    "plan",
    "`follow` [a group](#following-a-consumer-group), or be a [`member`](#a-member-of-a-group)",
)
FOLLOWED: Option[str] = Option("assignment.group", text, "", "the group to follow")
STRATEGY: Option[str] = Option(
    "assignment.strategy", text, "weighted", "the member's strategies in order of preference", of=Of.MEMBERS
)
MEMBERS: Option[int] = Option(
    "assignment.members", whole_number(most=64), 1, "the number of members as which the stream joins", of=Of.MEMBERS
)
CAPACITY: Option[float | None] = Option(
    "assignment.capacity",
    real_number(1e-9, 1e9),
    None,
    "the whole stream's capacity, relative to other members",
    shown_default="learned",
    of=Of.MEMBERS,
)

OPTIONS: Final[Mapping[str, Option[Any]]] = {
    each.name: each for each in tuple(globals().values()) if isinstance(each, Option)
}
"""All of the above, in the order of the guide."""

REFUSED = {
    "path": "not supported; name topics with subscribe, subscribePattern or assign",
    "topic": "names the topic to write to, and this source only reads; use subscribe",
}
"""Options that a user may expect here, and what to use instead."""


def guide() -> str:
    """Return the options as a table in Markdown."""
    rows = ["| Option | Default | For | Meaning |", "|---|---|---|---|"]
    for option in OPTIONS.values():
        fixed = "" if option.default in (None, "") else f"`{str(option.default).lower()}`"
        only = "" if option.of is Of.ALL else option.of.value
        rows.append(f"| `{option.name}` | {option.shown_default or fixed} | {only} | {option.meaning} |")
    return "".join(f"{row}\n" for row in rows)
