"""``spark.readStream.format("loadwise")``: a streaming query, seen by the process that Spark asks about its offsets.

::

    initialOffset     where the query starts: the starting* options, asked only while there is no checkpoint
    latestOffset      where the next micro-batch ends: all there is, less what maxOffsetsPerTrigger and such hold back
    partitions        which task reads what of a micro-batch: a pure function of both ends and the options
    read              one task, in a worker

One process serves a query as long as it runs; a restarted one gets the offsets out of the checkpoint. Spark does not
keep the initial offset of a Python source, and asks again when it replays the first micro-batch, by when "latest" is
somewhere else. So the first micro-batch is empty: its end, which Spark does keep, is the initial offset. That end is
marked (`BEGUN_HERE`), so that a replay knows an empty micro-batch of ours from one of another source's, whose beginning
it cannot know. Spark's class: ``KafkaMicroBatchStream``.

Before PySpark 4.2 (`loadwise.spark_source.pyspark_version`) Spark does not name the start of a micro-batch. There the
first one has what there is, but nothing of partitions that start at "latest"; and each end is marked.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.errors import (
    DataLossError,
    KafkaError,
    OffsetsUnavailableError,
    OptionError,
    SparkSourceError,
)
from loadwise.spark_source.options.bounds import EARLIEST, LATEST, Everywhere, Specific
from loadwise.spark_source.options.query import SourceOptions
from loadwise.spark_source.options.topics import named_topics
from loadwise.spark_source.planning.progress import (
    Positions,
    apart_from_made_anew,
    available,
    from_json,
    ids_in,
    lag,
    limited,
    moved_back,
    step,
    to_json,
    with_ids,
)
from loadwise.spark_source.planning.query import checked, shared_out
from loadwise.spark_source.pyspark_version import (
    NAMES_START,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from loadwise.spark_source.reading.arrow_batches import BatchBuilder, check_schema
from loadwise.spark_source.task import Task

logger = logging.getLogger(__name__)

OURS_TO_LIMIT = ReadMaxRows((1 << 63) - 1)
"""What Spark is told of our limits. They have no form in Python's API (a minimum, a maximum and a delay together), so
`LoadwiseStreamReader.latestOffset` keeps them itself. Then only ``trigger(once=True)`` brings `ReadAllAvailable`."""

BEGUN_HERE: dict[str, dict[str, int]] = {"(begun by loadwise)": {}}
"""What marks the end of a first micro-batch as ours: a name that no topic can have, without partitions. Spark's Kafka
source reads over it as we do."""

JsonOffset = dict[str, dict[str, int]]


class LoadwiseStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Answers Spark's questions about one streaming query. Made once in every process, and pickled to the workers."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._schema = schema
        self._parsed: SourceOptions | SparkSourceError
        try:
            self._parsed = checked(options, streaming=True)
            check_schema(schema, include_headers=self._parsed.include_headers)
        except SparkSourceError as error:
            self._parsed = error  # raised by the first method that is called: see LoadwiseDataSource.streamReader
        self._cluster: Any = None
        self._committing: Any = None
        self._initial: dict[TopicPartition, int] | None = None
        self._initial_is_news: bool | None = None
        """Whether Spark has asked for the initial offset (None: it has not) and not yet gone on from there."""
        self._replayed_end: JsonOffset | None = None
        """The end of the first micro-batch, where this process has planned it and did not hear of it before."""
        self._latest: dict[TopicPartition, int] = {}
        self._ids: Mapping[str, str] = {}
        """The id of each topic (KIP-516) when partitions were asked about last: before their offsets were."""
        self._answered: JsonOffset | None = None
        """The latest answer of `latestOffset`: a micro-batch that ends elsewhere was planned by another process."""
        self._behind: JsonOffset | None = None
        """The end of the latest micro-batch that this process has heard of, where the next one begins."""
        self._first_of_new: dict[TopicPartition, int] = {}
        self._target: dict[TopicPartition, int] | None = None
        """With ``Trigger.AvailableNow``, the end of the whole query; empty until the first question."""
        self._record_bytes: dict[TopicPartition, tuple[float, float]] = {}
        """What records weigh, as far as it was learned: `loadwise.spark_source.planning.sampling`."""
        self._passed_at_ms: float | None = None
        """When a micro-batch was last let through by ``minOffsetsPerTrigger`` and ``maxTriggerDelay``."""

    def initialOffset(self) -> JsonOffset:  # noqa: N802 - as Spark calls it
        """Where a query without a checkpoint starts. Raises `OptionError`, `SchemaError`, `KafkaError`."""
        initial = self._resolve() if self._initial is None else self._initial
        if self._initial_is_news is None:
            self._initial_is_news = True
        return with_ids(initial, self._ids) | BEGUN_HERE

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - as Spark calls it
        """That the limits are our own business: see `OURS_TO_LIMIT`."""
        return OURS_TO_LIMIT

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - as Spark calls it
        """From now on nothing is read beyond where the partitions end at the next question."""
        self._target = {}

    def latestOffset(self, start: JsonOffset | None = None, limit: ReadLimit = OURS_TO_LIMIT) -> JsonOffset:  # noqa: N802
        """Where the micro-batch that begins at ``start`` ends; ``start`` itself if there shall be none.

        Without ``start``, as Spark asks before 4.2, it is where the micro-batch before ended.
        """
        if start is not None:
            end = self._next_end(start, limit)
        elif self._behind is not None:
            end = self._next_end(self._behind, limit) | BEGUN_HERE
        else:
            end = self._end_of_the_first()
        self._answered = self._behind = end
        return end

    def reportLatestOffset(self) -> JsonOffset | None:  # noqa: N802 - as Spark calls it
        """Where the partitions ended at the latest question, for ``StreamingQueryProgress``."""
        return to_json(self._latest) or None

    def partitions(self, start: JsonOffset, end: JsonOffset) -> list[InputPartition]:
        """One input partition for each task of the plan that has something to read, in order.

        ``start`` and ``end`` are those of the checkpoint, so a replay plans what was planned before.
        Raises `DataLossError` (``failOnDataLoss``), `PlanError`, and `OptionError` where it cannot be found out
        any more where the micro-batch began.
        """
        # Nobody asked for its end: the first micro-batch, planned by a process that is no more. Spark takes what
        # `initialOffset` answers now as its start; but one of ours was empty, wherever that was.
        # A query that uses the stream twice, as in a union with itself, has each micro-batch planned twice.
        if self._initial_is_news:
            self._initial_is_news, self._replayed_end = False, end
        self._behind = end
        replay = end == self._replayed_end
        ours = replay and end.keys() >= BEGUN_HERE.keys()
        if start == end:
            return []
        begun, ended = from_json(start), from_json(end)
        if replay and not ours:
            self._refuse_unless_known(ended)
            begun = {place: at for place, at in begun.items() if place in ended}  # others were not there yet
        gone: tuple[str, ...] = ()
        if end != self._answered:
            # It was planned before this process began. What was made anew since can be read no more.
            ids = ids_in(end)
            same, gone = apart_from_made_anew(ended | begun, ids, self._ids_now(ids.keys(), ids))
            begun, ended = ({place: at for place, at in each.items() if place in same} for each in (begun, ended))
        begun, anew = apart_from_made_anew(begun, ids_in(start), ids_in(end))
        if ours and not NAMES_START:
            # What starts behind its end by now started at the latest offset then, which was the end.
            begun = {place: min(at, ended[place]) for place, at in begun.items() if place in ended}
        found = step(begun, ended, self._first_offsets(begun, ended))
        if not (ours and NAMES_START):
            self._lose(gone + anew + found.losses)
        if not any(map(len, found.ranges)):
            return []
        planned = shared_out(found.ranges, self._options, self._kafka.client, sticky=True, learned=self._record_bytes)
        self._log("%s; %s", planned, lag(ended, self._latest or ended))
        return [InputPartition(task) for task in planned.filled]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one task as Arrow batches. Raises what `read_task` raises."""
        from loadwise.spark_source.reading.tasks import read_task  # noqa: PLC0415 - needs its libraries: see check_installed

        task: Task = partition.value
        return read_task(task, self._options, BatchBuilder(self._schema))

    def stop(self) -> None:
        """Close the connection to Kafka."""
        if self._cluster is not None:
            self._cluster.client.consumer.close()
            self._cluster = self._committing = None

    @property
    def _options(self) -> SourceOptions:
        if isinstance(self._parsed, SparkSourceError):
            raise self._parsed
        return self._parsed

    @property
    def _kafka(self) -> Any:
        """The cluster to ask, connected to at the first question and kept for all others."""
        if self._cluster is None:
            from loadwise.spark_source.cluster.client import connect  # noqa: PLC0415 - see check_installed
            from loadwise.spark_source.cluster.offsets import Cluster  # noqa: PLC0415 - see check_installed

            options = self._options
            if options.ignored:
                logger.warning("ignored options: %s", ", ".join(options.ignored))
            client = connect(options.client, group_id_prefix=options.group_id_prefix, reads_samples=True)
            self._cluster = Cluster(client, options.client.api_timeout_ms)
        return self._cluster

    @property
    def _commits(self) -> Any:
        group = self._options.stream.commit_group
        if group is not None and self._committing is None:
            from loadwise.spark_source.cluster.commits import GroupCommits  # noqa: PLC0415 - see check_installed

            self._committing = GroupCommits(self._kafka.client, group)
        return self._committing

    def _next_end(self, start: JsonOffset, limit: ReadLimit) -> JsonOffset:
        begun = from_json(start)
        if self._commits is not None:
            # Spark asks only once all up to here has been processed; its commit() comes a micro-batch later, or never.
            self._commits.commit(begun)
        first = bool(self._initial_is_news)
        if first:
            self._initial_is_news = False
        self._latest = latest = self._end_of(begun, ids_in(start))
        if isinstance(limit, ReadAllAvailable):
            # There is this one micro-batch only, so it must not be empty. What was to start at the end stays empty, and
            # so a replay that finds another end loses nothing.
            end = latest | self._asked_for_latest(begun) if first else latest
            return with_ids(end, self._ids) | (BEGUN_HERE if first else {})
        if first:
            return start
        limits = self._options.stream
        same, _ = apart_from_made_anew(begun, ids_in(start), self._ids)
        self._first_of_new = self._first_offsets(same, latest)
        if self._target is None and limits.min_offsets and not self._may_pass(same, limits.min_offsets):
            return start
        end = limited(same, latest, self._first_of_new, limits.max_offsets) if limits.max_offsets else latest
        # No micro-batch for an id alone, where the checkpoint has none yet.
        return with_ids(end, self._ids) if end != begun or len(same) < len(begun) else start

    def _resolve(self) -> dict[TopicPartition, int]:
        """Where a query without a checkpoint starts."""
        options = self._options
        found = self._kafka.found(options, with_ids=True)
        self._ids = found.ids
        self._initial = self._kafka.resolved(options.starting, found.partitions)
        return self._initial

    def _end_of_the_first(self) -> JsonOffset:
        """Where the first micro-batch of this process ends, where Spark does not name its start: it has all there is.

        In a new query Spark asks for the start next. What starts at "latest" stays empty, so a replay that finds
        another start loses nothing. After a restart the end of such a partition is the latest offset, too.
        """
        begun: dict[TopicPartition, int] = {}
        with suppress(KafkaError, OptionError):  # after a restart nobody needs the start; `initialOffset` raises it
            begun = self._resolve()
        self._passed_at_ms = monotonic() * 1000
        return with_ids(self._end_of({}, {}) | self._asked_for_latest(begun), self._ids) | BEGUN_HERE

    def _end_of(self, begun: Positions, ids: Mapping[str, str]) -> dict[TopicPartition, int]:
        """Where all partitions end now, or ended when ``Trigger.AvailableNow`` began."""
        if self._target:
            self._target = self._still_there(self._target)
            return self._target
        options = self._options
        # What a query has read from before may be gone. With failOnDataLoss=false every topic may be: once one is gone,
        # the offset that Spark gives back no longer has it.
        topics = {place.topic for place in begun} if options.fail_on_data_loss else named_topics(options.topics)
        for attempt in range(options.stream.offset_retries + 1):
            if attempt:
                sleep(options.stream.offset_retry_interval_ms / 1000)
            found = self._kafka.found(options, known=topics, with_ids=True)
            self._ids = found.ids
            latest: dict[TopicPartition, int] = self._kafka.offsets(LATEST, found.partitions)
            # A broker may be behind for a moment; believing it would read records twice, or tell of losses.
            same, _ = apart_from_made_anew(begun, ids, found.ids)
            if len(same) == len(begun) and not moved_back(same, latest):
                break
        if self._target is not None:
            self._target = latest
        return latest

    def _still_there(self, target: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The end of the query, with none of the records of topics that were made anew since: they came later."""
        ids = self._ids_now(self._ids.keys(), self._ids)
        kept, losses = apart_from_made_anew(target, self._ids, ids)
        self._ids = {**self._ids, **ids}
        return {**kept, **dict.fromkeys(self._kafka.there(target.keys() - kept.keys()), 0)} if losses else target

    def _ids_now(self, topics: Collection[str], known: Mapping[str, str]) -> dict[str, str]:
        """The ids of topics that are there. Another one than is known is asked for again: a broker may be behind."""
        for attempt in range(self._options.stream.offset_retries + 1):
            if attempt:
                sleep(self._options.stream.offset_retry_interval_ms / 1000)
            ids: dict[str, str] = self._kafka.ids(topics)
            if all(known.get(topic, id_) == id_ for topic, id_ in ids.items()):
                break
        return ids

    def _first_offsets(self, begun: Positions, ended: Positions) -> dict[TopicPartition, int]:
        """Where the partitions that are new begin; without those that are gone again."""
        new = [place for place in ended if place not in begun and place not in self._first_of_new]
        try:
            found: dict[TopicPartition, int] = self._kafka.offsets(EARLIEST, new) if new else {}
        except OffsetsUnavailableError:
            there = self._kafka.there(new)
            if there == new:
                raise
            found = self._kafka.offsets(EARLIEST, there)
        return {place: at for place, at in (self._first_of_new | found).items() if place not in begun}

    def _may_pass(self, begun: Positions, least: int) -> bool:
        """Whether there is enough for a micro-batch, or it has been waited for long enough. The first one may."""
        now = monotonic() * 1000
        late = self._passed_at_ms is None or now - self._passed_at_ms >= self._options.stream.max_delay_ms
        if not late and sum(available(begun, self._latest, self._first_of_new).values()) < least:
            return False
        self._passed_at_ms = now
        return True

    def _asked_for_latest(self, begun: Positions) -> dict[TopicPartition, int]:
        match self._options.starting:
            case Everywhere(offset=offset):
                return dict(begun) if offset == LATEST else {}
            case Specific(offsets=offsets):
                return {place: at for place, at in begun.items() if offsets.get(place) == LATEST}
            case _:
                return {}

    def _refuse_unless_known(self, places: Collection[TopicPartition]) -> None:
        """Let another source's first micro-batch, of these partitions, be replayed only from where it surely began."""
        starting = self._options.starting
        if not isinstance(starting, Specific) or any(starting.offsets.get(place, -1) < 0 for place in places):
            raise OptionError(
                "startingOffsets",
                "the first micro-batch of this checkpoint is unfinished, and not of this source but Spark's Kafka"
                " source's, which keeps where it began in sources/0/0 of the checkpoint. Spark shows that to no Python"
                " source. For this one start set startingOffsets to the JSON in that file, or let format('kafka')"
                " finish the micro-batch",
            )

    def _lose(self, losses: tuple[str, ...]) -> None:
        """Fail for what is gone, or go on without it, as ``failOnDataLoss`` demands."""
        if losses and self._options.fail_on_data_loss:
            raise DataLossError(f"{'; '.join(losses)}; set failOnDataLoss=false to go on with what there is")
        for loss in losses:
            logger.warning("%s; going on with what there is, since failOnDataLoss=false", loss)

    def _log(self, text: str, *values: object) -> None:
        """Log for the user: Spark captures nothing of this process but its standard error, the driver's log."""
        if not logger.hasHandlers():
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
            logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.info(text, *values)
