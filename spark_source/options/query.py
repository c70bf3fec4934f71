"""A query's options, parsed and checked before any request.

Unlike Spark's Kafka integration, this source refuses an unknown option and names the nearest one. Otherwise a misspelt
``startingOffset`` would read the whole topic. Spark passes names in lower case and values as text. Each option is
declared in `loadwise.spark_source.options.declared`. Pure: nothing here contacts Kafka or imports Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from loadwise.nearest import near_or_all
from loadwise.spark_source.errors import OptionError, UnknownOptionError
from loadwise.spark_source.options import declared
from loadwise.spark_source.options.bounds import Bound, bounds_of
from loadwise.spark_source.options.client_config import ClientConfig, java_name, translate
from loadwise.spark_source.options.connection_config import not_honoured
from loadwise.spark_source.options.declared import OPTIONS, REFUSED, Of
from loadwise.spark_source.options.membership import GroupMember, group_member
from loadwise.spark_source.options.topics import Topics, may_read, topics_of

DEFAULT_READER = "batches"
GROUP_ID_PREFIX = {False: "spark-kafka-relation", True: "spark-kafka-source"}
"""By whether the query is a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """How the records are shared among tasks."""

    assignor: str = declared.ASSIGNOR.default
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
    max_records: int | None = None
    """``maxRecordsPerPartition``: the maximum number of records in a task; None for no limit."""
    follow_group: str | None = None
    """The group whose current assignment is the plan; None: an assignor plans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """Options of streams: the size of a micro-batch, and groups to commit to or to join."""

    max_offsets: int | None = None
    """``maxOffsetsPerTrigger``: the maximum size of a micro-batch; None for no limit."""
    min_offsets: int | None = None
    """``minOffsetsPerTrigger``: wait for this many offsets; None for no wait."""
    max_delay_ms: int = declared.MAX_DELAY.default
    """``maxTriggerDelay``: the longest wait for ``min_offsets``."""
    commit_group: str | None = None
    """The group that a stream commits to, for lag monitoring; None: no group."""
    member: GroupMember | None = None
    """The stream's group membership; None: it joins no group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """All parsed options of a query. Its text shows no secret."""

    topics: Topics
    starting: Bound
    ending: Bound
    client: ClientConfig
    plan: PlanOptions = PlanOptions()
    stream: StreamOptions = StreamOptions()
    fail_on_data_loss: bool = True
    include_headers: bool = False
    group_id_prefix: str = GROUP_ID_PREFIX[False]
    offset_attempts: int = declared.OFFSET_RETRIES.default
    """``fetchOffset.numRetries``: how often Spark's Kafka source makes a request about offsets, the first included."""
    offset_retry_interval_ms: int = declared.OFFSET_RETRY_INTERVAL.default
    """``fetchOffset.retryIntervalMs``: the pause after each of these attempts."""
    poll_timeout_ms: int = declared.POLL_TIMEOUT.default
    """How long a task waits for a record before it fails. Spark's default is ``spark.network.timeout``: 120 s."""
    reader: str = DEFAULT_READER
    """The reader of a task (`loadwise.spark_source.reading.tasks`): ``batches`` or ``messages``."""
    reader_is_given: bool = False
    """Whether the user chose the reader; then no other one replaces it."""
    ignored: tuple[str, ...] = ()
    """Options without effect, each with the reason."""

    @property
    def look_up_ms(self) -> int:
        """How long a request about topics or offsets is repeated: as long as all attempts of Spark's Kafka source."""
        return self.offset_attempts * (self.client.api_timeout_ms + self.offset_retry_interval_ms)


def parse(given: Mapping[str, str], *, streaming: bool = False) -> SourceOptions:
    """Parse and check the options from Spark (names in any case).

    Raises `OptionError`; its text begins with the name of the option.
    """
    options, java = _named(given)
    topics = topics_of(options)
    for option in OPTIONS.values():
        if streaming and option.of is Of.BATCHES and option.name in options:
            raise OptionError(option.name, "has no meaning in a streaming query, which does not end; leave it out")
    starting, ending = bounds_of(options, streaming=streaming)
    plan = _plan(options)
    client = translate(java)
    stream = _stream(options, java, topics, streaming=streaming)
    return SourceOptions(
        topics=topics,
        starting=starting,
        ending=ending,
        client=client,
        plan=plan,
        stream=stream,
        fail_on_data_loss=declared.FAIL_ON_DATA_LOSS.read(options),
        include_headers=declared.INCLUDE_HEADERS.read(options),
        group_id_prefix=declared.GROUP_ID_PREFIX.read(options) or GROUP_ID_PREFIX[streaming],
        offset_attempts=max(1, declared.OFFSET_RETRIES.read(options)),
        offset_retry_interval_ms=declared.OFFSET_RETRY_INTERVAL.read(options),
        poll_timeout_ms=declared.POLL_TIMEOUT.read(options),
        reader=_reader(options, client),
        reader_is_given=declared.READER.name in options,
        ignored=tuple(_ignored(options, java, topics, plan, streaming=streaming)),
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
            raise (in_a_stream if _only_a_stream_has(given) else in_a_batch) from None


def _only_a_stream_has(given: Mapping[str, str]) -> bool:
    lower = {name.lower(): value.strip().lower() for name, value in given.items()}
    limits = (declared.MAX_OFFSETS, declared.MIN_OFFSETS, declared.MAX_DELAY)
    return lower.get(declared.MODE.name) == "member" or any(limit.name.lower() in lower for limit in limits)


def _named(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options under their own spelling, and those of the Java client without ``kafka.``."""
    spelling = {name.lower(): name for name in OPTIONS}
    options: dict[str, str] = {}
    java: dict[str, str] = {}
    for name, value in given.items():
        lower = name.lower()
        if lower.startswith("kafka."):
            java[lower.removeprefix("kafka.")] = value
        elif lower in spelling:
            options[spelling[lower]] = value
        elif lower in REFUSED:
            raise UnknownOptionError(lower, REFUSED[lower])
        else:
            known = (*sorted(OPTIONS), "kafka.bootstrap.servers", "other kafka.*")
            raise UnknownOptionError(name, f"there is no such option{near_or_all(name, known)}")
    return options, java


def _plan(options: Mapping[str, str]) -> PlanOptions:
    costs = declared.COST_PER_RECORD.read(options)
    load_by = declared.LOAD_BY.read(options) or ("cost" if costs is not None else None)
    if load_by == "cost" and costs is None:
        raise OptionError("loadBy", "cost needs the cost of a record in each topic: set costPerRecord")
    if load_by != "cost" and costs is not None:
        raise OptionError("loadBy", f"{load_by} conflicts with costPerRecord; leave out one of them")
    split, max_records = declared.SPLIT.read(options), declared.MAX_RECORDS.read(options)
    if max_records and not split:
        raise OptionError("maxRecordsPerPartition", "conflicts with split=false, which leaves partitions whole")
    mode, group = declared.MODE.read(options), declared.FOLLOWED.read(options)
    if mode == "member" and group:
        raise OptionError(
            "assignment.group", "names a group to follow; the group that a member joins is kafka.group.id"
        )
    if mode == "plan" and group:
        raise OptionError("assignment.group", "names a group to follow; set assignment.mode=follow too")
    if mode == "follow" and not group:
        raise OptionError("assignment.mode", "follow needs the group to follow: set assignment.group")
    return PlanOptions(
        assignor=declared.ASSIGNOR.read(options),
        num_tasks=declared.NUM_TASKS.read(options),
        min_tasks=declared.MIN_PARTITIONS.read(options),
        split=split,
        cost_per_record=costs or {},
        load_by=load_by,
        max_records=max_records,
        follow_group=group or None,
    )


def _stream(options: Mapping[str, str], java: Mapping[str, str], topics: Topics, *, streaming: bool) -> StreamOptions:
    least, most = declared.MIN_OFFSETS.read(options), declared.MAX_OFFSETS.read(options)
    if least and most and least > most:
        raise OptionError("minOffsetsPerTrigger", f"{least} is more than maxOffsetsPerTrigger, {most}")
    commits = declared.COMMIT_GROUP.read(options)
    if commits and not java.get("group.id", "").strip():
        raise OptionError("commitGroup", "needs the group to commit to: set kafka.group.id")
    return StreamOptions(
        max_offsets=most,
        min_offsets=least,
        max_delay_ms=declared.MAX_DELAY.read(options),
        commit_group=java["group.id"] if commits and streaming else None,
        member=group_member(options, java, topics, streaming=streaming),
    )


def _reader(options: Mapping[str, str], client: ClientConfig) -> str:
    """Return the requested reader, else batches if its client supports all settings."""
    given = declared.READER.read(options)
    missing = not_honoured(client.settings)
    if given == "batches" and missing:
        names = ", ".join(java_name(name) for name in missing)
        raise OptionError("reader", f"batches are read by a client without {names}; use reader=messages")
    return given or ("messages" if missing else DEFAULT_READER)


def _ignored(
    options: Mapping[str, str], java: Mapping[str, str], topics: Topics, plan: PlanOptions, *, streaming: bool
) -> Iterator[str]:
    """Name options without effect and the reason, for a warning."""
    given = [option for option in OPTIONS.values() if option.name in options]
    for option in given:
        if option.of is Of.STREAMS and not streaming:
            yield f"{option.name} (has no effect in a batch query)"
        if option.of is Of.PLANS and plan.follow_group is not None:
            yield f"{option.name} (the plan is that of the group followed)"
        winner = next((name for name in option.behind if name in options), None)
        if winner is not None:
            yield f"{option.name} ({winner} takes precedence)"
    if declared.TIMESTAMP_STRATEGY.name in options and not options.keys() & set(declared.STARTING_OFFSETS.behind):
        yield f"{declared.TIMESTAMP_STRATEGY.name} (no timestamp is given to start at)"
    for topic in plan.cost_per_record:
        if not may_read(topics, topic):
            yield f"costPerRecord of {topic} (the query does not read it)"
    if declared.GROUP_ID_PREFIX.name in options and java.get("group.id", "").strip():
        yield "groupIdPrefix (kafka.group.id is given)"
