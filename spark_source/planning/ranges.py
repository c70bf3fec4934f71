"""Resolves the topics and bounds of a query to an offset range for each partition.

Spark's class is ``KafkaOffsetReaderAdmin`` (``getOffsetRangesFromUnresolvedOffsets``), whose rules about required
entries apply here.
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
    """Return the offset range of every partition of the query, empty ones included, by topic and partition.

    Raises `OffsetsUnavailableError` if Kafka does not know a topic or does not answer in time, `OptionError` if the
    given offsets do not fit the existing partitions, and `DataLossError` if they name missing records
    (``failOnDataLoss``; otherwise a warning is logged, and the range is cut to the existing ones).
    """
    partitions = cluster.found(options).partitions
    starts = cluster.asked(options.starting, partitions)
    ends = cluster.asked(options.ending, partitions)
    # Looked up last, so that a record that arrives meanwhile never lies behind the end.
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
    """Cut a range to the existing offsets, if ``failOnDataLoss`` allows it."""
    if wanted.start > wanted.end:
        problem = f"starts ({options.starting.option}) after its end ({options.ending.option})"
    elif wanted.start < first or wanted.end > last:
        problem = f"is incomplete: the partition holds [{first}, {last})"
    else:
        return wanted
    if options.fail_on_data_loss:
        raise DataLossError(
            f"{wanted} {problem}; change {options.starting.option} or {options.ending.option}, or set"
            " failOnDataLoss=false to read the existing records"
        )
    start = max(wanted.start, first)
    there = OffsetRange(wanted.topic, wanted.partition, start, max(start, min(wanted.end, last)))
    logger.warning("%s %s; reading %d of its offsets (failOnDataLoss=false)", wanted, problem, len(there))
    return there
