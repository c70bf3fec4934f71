"""What there is to read: topics and bounds as the options name them, resolved to an offset range per partition.

Kafka is asked through one consumer: Metadata for topics and partitions, ListOffsets for the rest. Spark's class:
``KafkaOffsetReaderAdmin`` (``getOffsetRangesFromUnresolvedOffsets``), whose rules for what must be given hold here.
"""

from __future__ import annotations

import logging

from loadwise.spark_source.cluster.offsets import Cluster
from loadwise.spark_source.errors import DataLossError
from loadwise.spark_source.options.bounds import EARLIEST, LATEST
from loadwise.spark_source.options.query import SourceOptions
from loadwise.spark_source.task import OffsetRange

logger = logging.getLogger(__name__)


def resolve(options: SourceOptions, cluster: Cluster) -> list[OffsetRange]:
    """The offset range of every partition that the query reads, empty ones included, by topic and partition.

    Raises `OffsetsUnavailableError` where Kafka does not know a topic or does not answer in time, `OptionError` where
    the offsets given do not fit the partitions there are, `DataLossError` where they ask for what is not there and
    ``failOnDataLoss`` holds (otherwise a warning is logged and the range is cut to what is there).
    """
    partitions = cluster.partitions(options)
    starts = cluster.asked(options.starting, partitions)
    ends = cluster.asked(options.ending, partitions)
    # Only now, so that a record that arrives meanwhile never lies behind what we take for the end.
    last = cluster.offsets(LATEST, partitions)
    first = cluster.offsets(EARLIEST, partitions)
    edges = {EARLIEST: first, LATEST: last}
    return [
        _checked(
            OffsetRange(
                *place,
                edges[starts[place]][place] if starts[place] in edges else starts[place],
                edges[ends[place]][place] if ends[place] in edges else ends[place],
            ),
            first[place],
            last[place],
            options,
        )
        for place in partitions
    ]


def _checked(wanted: OffsetRange, first: int, last: int, options: SourceOptions) -> OffsetRange:
    """Cut a range to what the partition holds, if ``failOnDataLoss`` lets us."""
    if wanted.start > wanted.end:
        problem = f"starts ({options.starting.option}) behind its end ({options.ending.option})"
    elif wanted.start < first or wanted.end > last:
        problem = f"is not all there: the partition holds [{first}, {last})"
    else:
        return wanted
    if options.fail_on_data_loss:
        raise DataLossError(
            f"{wanted} {problem}; change {options.starting.option} or {options.ending.option}, or set"
            " failOnDataLoss=false to read what there is"
        )
    start = max(wanted.start, first)
    there = OffsetRange(wanted.topic, wanted.partition, start, max(start, min(wanted.end, last)))
    logger.warning("%s %s; reading %d offsets of it, since failOnDataLoss=false", wanted, problem, len(there))
    return there
