"""What a query asks for, once its options are parsed: topics, bounds, limits, who plans and who reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.options.client_config import ClientConfig

LATEST = -1
"""Kafka's and Spark's number for the end of a partition."""
EARLIEST = -2
"""Kafka's and Spark's number for the beginning of a partition."""

DEFAULT_ASSIGNOR = "weighted"
READERS = ("batches", "messages")
DEFAULT_READER = "batches"
DEFAULT_GROUP_ID_PREFIX = {False: "spark-kafka-relation", True: "spark-kafka-source"}
"""By whether the query is a stream."""
DEFAULT_POLL_TIMEOUT_MS = 120_000
DEFAULT_MAX_TRIGGER_DELAY_MS = 15 * 60_000
LEAST_COST, MOST_COST = 1e-9, 1e9
"""What a record may cost, in relation to others: floating point adds up loads that lie so far apart."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    """All partitions of these topics (``subscribe``)."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """All partitions of the topics whose name has a match in it (``subscribePattern``): a part, as with Spark's."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Assign:
    """These partitions and no others (``assign``)."""

    partitions: tuple[TopicPartition, ...]


Topics: TypeAlias = Subscribe | SubscribePattern | Assign


def named_topics(topics: Topics) -> set[str]:
    """The topics that are given by name; none for a pattern."""
    match topics:
        case Subscribe(names):
            return set(names)
        case Assign(partitions):
            return {place.topic for place in partitions}
        case SubscribePattern():
            return set()


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The same end of every partition."""

    option: str
    """The option that asks for it, for messages."""
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
class Admission:
    """How much a micro-batch may and must hold."""

    max_offsets: int | None = None
    """``maxOffsetsPerTrigger``: most offsets in a micro-batch; None for no limit."""
    min_offsets: int | None = None
    """``minOffsetsPerTrigger``: with fewer than these to read, no micro-batch yet; None for no such wait."""
    max_delay_ms: int = DEFAULT_MAX_TRIGGER_DELAY_MS
    """``maxTriggerDelay``: how long fewer than ``min_offsets`` may be waited on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """What a stream joins a group with (``assignment.mode=member``)."""

    group: str
    """``kafka.group.id``."""
    members: int = 1
    """``assignment.members``: as how many members."""
    strategies: tuple[str, ...] = ("weighted",)
    """``assignment.strategy``: in order of preference; the group uses the first that all of its members know."""
    capacity: float | None = None
    """``assignment.capacity``: what the whole stream can process, in relation to the others; None: it is learned."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of members of groups, by Kafka's names (librdkafka has the same)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Everything that the options of a query ask for. Its text shows no secret."""

    topics: Topics
    starting: Bound
    ending: Bound
    client: ClientConfig
    assignor: str = DEFAULT_ASSIGNOR
    """Name of an algorithm, or the dotted name of a class of the user's that implements `Assignor`."""
    num_tasks: int | None = None
    """How many members the plan has; None: as many as are worth it (`loadwise.spark_source.planning.plan`)."""
    min_tasks: int = 1
    """``minPartitions``: how many members the plan has at least, where ``num_tasks`` is None."""
    split: bool = True
    """Whether a partition may be cut into offset ranges for several tasks."""
    cost_per_record: Mapping[str, float] = field(default_factory=dict)
    """What a record of a topic costs relative to the others'; 1 for topics that are not named."""
    load_by: str | None = None
    """What makes tasks even: ``records``, ``bytes`` of records as they were sampled, or ``cost``, which is given.
    None: bytes where there is much to read, and records where there is not."""
    fail_on_data_loss: bool = True
    include_headers: bool = False
    group_id_prefix: str = DEFAULT_GROUP_ID_PREFIX[False]
    admission: Admission = Admission()
    max_records_per_task: int | None = None
    """``maxRecordsPerPartition``: most records in a task; None for no limit."""
    commit_group: str | None = None
    """The group that a stream's offsets are committed to, for those who watch its lag; None: to no group."""
    follow_group: str | None = None
    """The group whose live assignment is the plan; None: an assignor plans."""
    member: GroupMember | None = None
    """What the stream joins a group with; None: it is no member of any."""
    offset_retries: int = 3
    """``fetchOffset.numRetries``: how often Kafka is asked for offsets before its answer is believed to be final."""
    offset_retry_interval_ms: int = 1000
    """``fetchOffset.retryIntervalMs``: the time between two of these questions."""
    poll_timeout_ms: int = DEFAULT_POLL_TIMEOUT_MS
    """How long a task waits for a record before it fails. Spark's default is ``spark.network.timeout``: 120 s."""
    reader: str = DEFAULT_READER
    """Which reader a task has (`loadwise.spark_source.reading.tasks`): ``batches`` or ``messages``."""
    reader_is_asked_for: bool = False
    """Whether the user named the reader: then no other one takes over what it cannot read."""
    ignored: tuple[str, ...] = ()
    """Options that were given and change nothing, each with the reason."""
