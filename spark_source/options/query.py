"""A query's parsed options: topics, bounds, limits, planning and readers."""

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
"""The range of a record's relative cost: floating point can add loads that differ this much."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    """All partitions of these topics (``subscribe``)."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """All partitions of topics with a match in their name (``subscribePattern``): a part, as in Spark."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Assign:
    """These partitions only (``assign``)."""

    partitions: tuple[TopicPartition, ...]


Topics: TypeAlias = Subscribe | SubscribePattern | Assign


def named_topics(topics: Topics) -> set[str]:
    """Return the topics given by name; none for a pattern."""
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
    """The option that sets it, for messages."""
    offset: int
    """`EARLIEST` or `LATEST`."""


@dataclass(frozen=True, slots=True)
class Specific:
    """An offset for each partition; may be `EARLIEST` or `LATEST`."""

    option: str
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """The first record of each partition at or after a time, in ms since the epoch."""

    option: str
    timestamp_ms: int | Mapping[TopicPartition, int]
    latest_if_none: bool
    """Whether a partition without such a record uses its end; otherwise it is an error."""


Bound: TypeAlias = Everywhere | Specific | AtTimestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Limits for the size of a micro-batch."""

    max_offsets: int | None = None
    """``maxOffsetsPerTrigger``: the maximum size of a micro-batch; None for no limit."""
    min_offsets: int | None = None
    """``minOffsetsPerTrigger``: wait for this many offsets; None for no wait."""
    max_delay_ms: int = DEFAULT_MAX_TRIGGER_DELAY_MS
    """``maxTriggerDelay``: the longest wait for ``min_offsets``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A stream's settings for joining a group (``assignment.mode=member``)."""

    group: str
    """``kafka.group.id``."""
    members: int = 1
    """``assignment.members``: the number of members."""
    strategies: tuple[str, ...] = ("weighted",)
    """``assignment.strategy``: in order of preference; the group uses the first that all of its members have."""
    capacity: float | None = None
    """``assignment.capacity``: the whole stream's capacity relative to the others; None: it is measured."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of group members, by Kafka's names (the same in librdkafka)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """All parsed options of a query. Its text shows no secret."""

    topics: Topics
    starting: Bound
    ending: Bound
    client: ClientConfig
    assignor: str = DEFAULT_ASSIGNOR
    """Name of an algorithm, or the dotted name of the user's class that implements `Assignor`."""
    num_tasks: int | None = None
    """The number of tasks; None: as many as pay off (`loadwise.spark_source.planning.plan`)."""
    min_tasks: int = 1
    """``minPartitions``: the minimum number of tasks if ``num_tasks`` is None."""
    split: bool = True
    """Whether a partition may be cut into offset ranges for several tasks."""
    cost_per_record: Mapping[str, float] = field(default_factory=dict)
    """The cost of a topic's record relative to others; 1 for other topics."""
    load_by: str | None = None
    """The load to balance: ``records``, ``bytes`` of sampled records, or the given ``cost``.
    None: bytes for large reads, and records for small ones."""
    fail_on_data_loss: bool = True
    include_headers: bool = False
    group_id_prefix: str = DEFAULT_GROUP_ID_PREFIX[False]
    admission: Admission = Admission()
    max_records_per_task: int | None = None
    """``maxRecordsPerPartition``: the maximum number of records in a task; None for no limit."""
    commit_group: str | None = None
    """The group that a stream commits to, for lag monitoring; None: no group."""
    follow_group: str | None = None
    """The group whose current assignment is the plan; None: an assignor plans."""
    member: GroupMember | None = None
    """The stream's group membership; None: it joins no group."""
    offset_retries: int = 3
    """``fetchOffset.numRetries``: how often to request offsets before the answer counts as final."""
    offset_retry_interval_ms: int = 1000
    """``fetchOffset.retryIntervalMs``: the time between two of these requests."""
    poll_timeout_ms: int = DEFAULT_POLL_TIMEOUT_MS
    """How long a task waits for a record before it fails. Spark's default is ``spark.network.timeout``: 120 s."""
    reader: str = DEFAULT_READER
    """The reader of a task (`loadwise.spark_source.reading.tasks`): ``batches`` or ``messages``."""
    reader_is_asked_for: bool = False
    """Whether the user chose the reader; then no other one replaces it."""
    ignored: tuple[str, ...] = ()
    """Options without effect, each with the reason."""
