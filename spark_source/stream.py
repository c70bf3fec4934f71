"""A streaming query, ``spark.readStream.format("loadwise")``, in the process that Spark asks about its offsets.

::

    initialOffset     where the query starts, from the starting* options; asked only without a checkpoint
    latestOffset      where the next micro-batch ends: the end of the data, or less with maxOffsetsPerTrigger
    partitions        the tasks of a micro-batch: a pure function of both ends and the options
    read              reads one task, in a worker

One process serves a query as long as it runs; after a restart Spark passes offsets from the checkpoint. Spark does not
store the initial offset of a Python source. It asks again when it replays the first micro-batch, and then "latest" is
another offset. So the first micro-batch is empty: its end, which Spark stores, is the initial offset. That end is
marked (`BEGUN_HERE`), so that a replay can tell our empty micro-batch from one of another source, whose start is
unknown. Spark's class is ``KafkaMicroBatchStream``.

Before PySpark 4.2 (`loadwise.spark_source.pyspark_version`) Spark does not pass the start of a micro-batch. There the
first one has all records, except from partitions that start at "latest", and each end is marked.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING

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
    apart_from_recreated,
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
from loadwise.spark_source.reading.arrow_batches import check_schema
from loadwise.spark_source.task import Task

if TYPE_CHECKING:
    import pyarrow as pa

    from loadwise.spark_source.cluster.commits import GroupCommits
    from loadwise.spark_source.cluster.offsets import Cluster

logger = logging.getLogger(__name__)

OURS_TO_LIMIT = ReadMaxRows((1 << 63) - 1)
"""The limit that we give Spark. Its Python API has no form for a minimum, a maximum and a delay together, so
`LoadwiseStreamReader.latestOffset` applies them. Then only ``trigger(once=True)`` passes `ReadAllAvailable`."""

BEGUN_HERE: dict[str, dict[str, int]] = {"(begun by loadwise)": {}}
"""Marks the end of a first micro-batch as ours: a name that no topic can have, without partitions. Spark's Kafka source
ignores it too."""

JsonOffset = dict[str, dict[str, int]]


class LoadwiseStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans and reads one streaming query. Created once in each process, and pickled for the workers."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._schema = schema
        self._parsed: SourceOptions | SparkSourceError
        try:
            self._parsed = checked(options, streaming=True)
            check_schema(schema, include_headers=self._parsed.include_headers)
        except SparkSourceError as error:
            self._parsed = error  # the first call of a method raises it: see LoadwiseDataSource.streamReader
        self._cluster: Cluster | None = None
        self._committing: GroupCommits | None = None
        self._initial: dict[TopicPartition, int] | None = None
        self._initial_is_news: bool | None = None
        """Whether Spark has asked for the initial offset (None: it has not) and not yet passed it back."""
        self._replayed_end: JsonOffset | None = None
        """The end of the first micro-batch, if another process answered it and this one planned it."""
        self._latest: dict[TopicPartition, int] = {}
        self._ids: Mapping[str, str] = {}
        """The id of each topic (KIP-516), requested before the latest offsets."""
        self._answered: JsonOffset | None = None
        """The latest answer of `latestOffset`: another process planned a micro-batch with another end."""
        self._behind: JsonOffset | None = None
        """The end of the latest micro-batch that this process knows, where the next one begins."""
        self._first_of_new: dict[TopicPartition, int] = {}
        self._target: dict[TopicPartition, int] | None = None
        """With ``Trigger.AvailableNow``, the end of the whole query; empty before the first micro-batch."""
        self._record_bytes: dict[TopicPartition, tuple[float, float]] = {}
        """The sizes of records so far: see `loadwise.spark_source.planning.sampling`."""
        self._passed_at_ms: float | None = None
        """When ``minOffsetsPerTrigger`` and ``maxTriggerDelay`` last admitted a micro-batch."""

    def initialOffset(self) -> JsonOffset:  # noqa: N802 - as Spark calls it
        """Return where a query without a checkpoint starts. Raises `OptionError`, `SchemaError`, `KafkaError`."""
        initial = self._resolve() if self._initial is None else self._initial
        if self._initial_is_news is None:
            self._initial_is_news = True
        return with_ids(initial, self._ids) | BEGUN_HERE

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - as Spark calls it
        """Return `OURS_TO_LIMIT`."""
        return OURS_TO_LIMIT

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - as Spark calls it
        """Read nothing beyond the end of the partitions at the next call of `latestOffset`."""
        self._target = {}

    def latestOffset(self, start: JsonOffset | None = None, limit: ReadLimit = OURS_TO_LIMIT) -> JsonOffset:  # noqa: N802
        """Return the end of the micro-batch that begins at ``start``, or ``start`` for none.

        Before 4.2 Spark passes no ``start``; then it is the end of the micro-batch before.
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
        """Return the latest known end of the partitions, for ``StreamingQueryProgress``."""
        return to_json(self._latest) or None

    def partitions(self, start: JsonOffset, end: JsonOffset) -> list[InputPartition]:
        """Return one input partition for each task of the plan with records, in order.

        ``start`` and ``end`` are those of the checkpoint, so a replay makes the same plan.
        Raises `DataLossError` (``failOnDataLoss``), `PlanError`, and `OptionError` if the start of the micro-batch is
        unknown.
        """
        # Without a call of latestOffset this is a replay of the first micro-batch. Spark takes the present answer of
        # `initialOffset` as its start; but a first micro-batch of ours is empty, wherever it started.
        # If a query uses the stream twice, as in a union with itself, Spark plans each micro-batch twice.
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
            begun = {place: at for place, at in begun.items() if place in ended}  # others did not exist yet
        gone: tuple[str, ...] = ()
        if end != self._answered:
            # Another process planned it. Topics that were recreated since cannot be read any more.
            ids = ids_in(end)
            same, gone = apart_from_recreated(ended | begun, ids, self._ids_now(ids.keys(), ids))
            begun, ended = ({place: at for place, at in each.items() if place in same} for each in (begun, ended))
        begun, anew = apart_from_recreated(begun, ids_in(start), ids_in(end))
        if ours and not NAMES_START:
            # A start behind its end was the latest offset at that time, which was the end.
            begun = {place: min(at, ended[place]) for place, at in begun.items() if place in ended}
        found = step(begun, ended, self._first_offsets(begun, ended))
        if not (ours and NAMES_START):
            self._lose(gone + anew + found.losses)
        if not any(map(len, found.ranges)):
            return []
        planned = shared_out(found.ranges, self._options, self._kafka.client, sticky=True, learned=self._record_bytes)
        self._log("%s; %s", planned, lag(ended, self._latest or ended))
        return [InputPartition(task) for task in planned.filled]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the records of one task as Arrow batches. Raises the errors of `read_task`."""
        from loadwise.spark_source.reading.tasks import read_task  # noqa: PLC0415 - needs its libraries: see check_installed

        task: Task = partition.value
        return read_task(task, self._options, self._schema)

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
    def _kafka(self) -> Cluster:
        if self._cluster is None:
            from loadwise.spark_source.cluster.client import connect  # noqa: PLC0415 - see check_installed
            from loadwise.spark_source.cluster.offsets import Cluster  # noqa: PLC0415 - see check_installed

            options = self._options
            if options.ignored:
                logger.warning("ignored options: %s", ", ".join(options.ignored))
            client = connect(options.client, group_id_prefix=options.group_id_prefix, reads_samples=True)
            self._cluster = Cluster(client, options.look_up_ms)
        return self._cluster

    @property
    def _commits(self) -> GroupCommits | None:
        group = self._options.stream.commit_group
        if group is not None and self._committing is None:
            from loadwise.spark_source.cluster.commits import GroupCommits  # noqa: PLC0415 - see check_installed

            self._committing = GroupCommits(self._kafka.client, group)
        return self._committing

    def _next_end(self, start: JsonOffset, limit: ReadLimit) -> JsonOffset:
        begun = from_json(start)
        if self._commits is not None:
            # Spark has processed everything up to here; its own commit() comes a micro-batch later, or never.
            self._commits.commit(begun)
        first = bool(self._initial_is_news)
        if first:
            self._initial_is_news = False
        self._latest = latest = self._end_of(begun, ids_in(start))
        if isinstance(limit, ReadAllAvailable):
            # This is the only micro-batch, so it must not be empty. Partitions that start at "latest" stay empty, so a
            # replay with another end loses nothing.
            end = latest | self._asked_for_latest(begun) if first else latest
            return with_ids(end, self._ids) | (BEGUN_HERE if first else {})
        if first:
            return start
        limits = self._options.stream
        same, _ = apart_from_recreated(begun, ids_in(start), self._ids)
        self._first_of_new = self._first_offsets(same, latest)
        if self._target is None and limits.min_offsets and not self._may_pass(same, limits.min_offsets):
            return start
        end = limited(same, latest, self._first_of_new, limits.max_offsets) if limits.max_offsets else latest
        # No micro-batch only to store topic ids, if the checkpoint has none yet.
        return with_ids(end, self._ids) if end != begun or len(same) < len(begun) else start

    def _resolve(self) -> dict[TopicPartition, int]:
        """Return where a query without a checkpoint starts."""
        options = self._options
        found = self._kafka.found(options, with_ids=True)
        self._ids = found.ids
        self._initial = self._kafka.resolved(options.starting, found.partitions)
        return self._initial

    def _end_of_the_first(self) -> JsonOffset:
        """Return the end of the first micro-batch of this process if Spark passes no start: the end of the data.

        In a new query Spark asks for the start next. Partitions that start at "latest" stay empty, so a replay with
        another start loses nothing. After a restart the end of such a partition is the latest offset, too.
        """
        begun: dict[TopicPartition, int] = {}
        with suppress(KafkaError, OptionError):  # only a new query needs the start, and `initialOffset` raises it
            begun = self._resolve()
        self._passed_at_ms = monotonic() * 1000
        return with_ids(self._end_of({}, {}) | self._asked_for_latest(begun), self._ids) | BEGUN_HERE

    def _end_of(self, begun: Positions, ids: Mapping[str, str]) -> dict[TopicPartition, int]:
        """Return where all partitions end now, or ended when ``Trigger.AvailableNow`` began."""
        if self._target:
            self._target = self._still_there(self._target)
            return self._target
        options = self._options
        # Topics that the query has read may be deleted. With failOnDataLoss=false any topic may be, because the offset
        # that Spark passes back does not have a deleted one.
        topics = {place.topic for place in begun} if options.fail_on_data_loss else named_topics(options.topics)
        for _ in self._attempts():
            found = self._kafka.found(options, known=topics, with_ids=True)
            self._ids = found.ids
            latest: dict[TopicPartition, int] = self._kafka.offsets(LATEST, found.partitions)
            # A broker may be behind for a moment; believing it would read records twice, or report losses.
            same, _ = apart_from_recreated(begun, ids, found.ids)
            if len(same) == len(begun) and not moved_back(same, latest):
                break
        if self._target is not None:
            self._target = latest
        return latest

    def _still_there(self, target: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the end of the query, without records of topics that were recreated since: they came later."""
        ids = self._ids_now(self._ids.keys(), self._ids)
        kept, losses = apart_from_recreated(target, self._ids, ids)
        self._ids = {**self._ids, **ids}
        return {**kept, **dict.fromkeys(self._kafka.there(target.keys() - kept.keys()), 0)} if losses else target

    def _ids_now(self, topics: Collection[str], known: Mapping[str, str]) -> dict[str, str]:
        """Return the ids of existing topics. An id that has changed is requested again: a broker may be behind."""
        for _ in self._attempts():
            ids: dict[str, str] = self._kafka.ids(topics)
            if all(known.get(topic, id_) == id_ for topic, id_ in ids.items()):
                break
        return ids

    def _attempts(self) -> Iterator[None]:
        """Yield ``fetchOffset.numRetries`` times, with pauses in between."""
        yield
        for _ in range(self._options.offset_attempts - 1):
            sleep(self._options.offset_retry_interval_ms / 1000)
            yield

    def _first_offsets(self, begun: Positions, ended: Positions) -> dict[TopicPartition, int]:
        """Return where new partitions begin, without those that were deleted again."""
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
        """Whether there is enough for a micro-batch, or the wait was long enough. The first one always passes."""
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
        """Refuse to replay another source's first micro-batch unless ``startingOffsets`` names its start."""
        starting = self._options.starting
        if not isinstance(starting, Specific) or any(starting.offsets.get(place, -1) < 0 for place in places):
            raise OptionError(
                "startingOffsets",
                "the first micro-batch of this checkpoint is unfinished, and Spark's Kafka source began it. Its start"
                " is in the file sources/0/0 of the checkpoint, which Spark does not pass to Python sources. For this"
                " start of the query set startingOffsets to the JSON in that file, or let format('kafka') finish the"
                " micro-batch",
            )

    def _lose(self, losses: tuple[str, ...]) -> None:
        """Fail if records were lost, or log it, depending on ``failOnDataLoss``."""
        if losses and self._options.fail_on_data_loss:
            raise DataLossError(f"{'; '.join(losses)}; set failOnDataLoss=false to continue without these records")
        for loss in losses:
            logger.warning("%s; continuing without these records (failOnDataLoss=false)", loss)

    def _log(self, text: str, *values: object) -> None:
        """Log for the user: Spark captures only the standard error of this process, in the driver's log."""
        if not logger.hasHandlers():
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
            logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.info(text, *values)
