"""From a query's options to its plan: for batches, for streams, and to look at a plan without Spark."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from time import monotonic
from typing import Any

from loadwise.assignor.model import TopicPartition
from loadwise.installation import pip_install
from loadwise.spark_source.errors import MissingDependencyError
from loadwise.spark_source.options.keystores import with_key
from loadwise.spark_source.options.query import SourceOptions, parse
from loadwise.spark_source.options.truststores import with_certificates
from loadwise.spark_source.planning.assignors import assignor_named
from loadwise.spark_source.planning.density import Density, even
from loadwise.spark_source.planning.plan import Plan, plan
from loadwise.spark_source.planning.slots import slots_of_driver
from loadwise.spark_source.pyspark_version import refuse_what_needs_later
from loadwise.spark_source.task import OffsetRange

logger = logging.getLogger(__name__)

MUCH = 5_000
"""With more records than these, their sizes are looked at where ``loadBy`` is not given."""
LIBRARIES = {
    "confluent_kafka": "confluent-kafka",
    "pyarrow": "pyarrow",
    "aiokafka": "aiokafka",
    "crc32c": "crc32c",
    "cramjam": "cramjam",
}
"""What reading takes: modules, and the packages that have them."""


def check_installed() -> None:
    """Raise `MissingDependencyError`, which names the extra, unless everything that reading takes is there."""
    for module, name in LIBRARIES.items():
        if find_spec(module) is None:
            raise MissingDependencyError(
                f"format('loadwise') needs {name}, which is not installed: {pip_install('spark')}"
            )


def checked(options: Mapping[str, str], *, streaming: bool = False) -> SourceOptions:
    """The options of a query that can be tried: all are right, and what it takes is installed.

    Raises `OptionError`, `MissingDependencyError`.
    """
    check_installed()
    refuse_what_needs_later(options, streaming=streaming)
    parsed = parse(options, streaming=streaming)
    assignor_named(parsed.plan.assignor)
    return replace(parsed, client=with_key(with_certificates(parsed.client)))


def planned(options: Mapping[str, str]) -> Plan:
    """The plan that a query with these options would have now: to look at, without Spark.

    Raises what `checked`, `loadwise.spark_source.planning.ranges.resolve` and
    `loadwise.spark_source.planning.plan.plan` raise.
    """
    return planned_by(checked(options))


def partition_counts(options: Mapping[str, str], *, streaming: bool = False) -> dict[str, int]:
    """How many partitions each topic has now that a query with these options reads; with ``assign``, at least.

    Raises `OptionError`, `MissingDependencyError`, `OffsetsUnavailableError`.
    """
    parsed = checked(options, streaming=streaming)
    from loadwise.spark_source.cluster.client import connected  # noqa: PLC0415 - needs confluent-kafka: see check_installed
    from loadwise.spark_source.cluster.offsets import Cluster  # noqa: PLC0415 - likewise

    with connected(parsed.client, group_id_prefix=parsed.group_id_prefix) as client:
        places = Cluster(client, parsed.client.api_timeout_ms).partitions(parsed)
    return {topic: number + 1 for topic, number in places}  # sorted, so the last one counts


def planned_by(options: SourceOptions) -> Plan:
    """As `planned`, of options that were parsed."""
    from loadwise.spark_source.cluster.client import kept_or_connected  # noqa: PLC0415 - needs confluent-kafka: see check_installed
    from loadwise.spark_source.cluster.offsets import Cluster  # noqa: PLC0415 - likewise
    from loadwise.spark_source.planning.ranges import resolve  # noqa: PLC0415 - likewise

    if options.ignored:
        logger.warning("ignored options: %s", ", ".join(options.ignored))
    with kept_or_connected(options.client, group_id_prefix=options.group_id_prefix) as client:
        return shared_out(resolve(options, Cluster(client, options.client.api_timeout_ms)), options, client)


def shared_out(
    ranges: Sequence[OffsetRange],
    options: SourceOptions,
    client: Any,
    *,
    sticky: bool = False,
    learned: dict[TopicPartition, tuple[float, float]] | None = None,
) -> Plan:
    """The plan for these ranges that the options ask for. Raises `PlanError`, `GroupUnavailableError`.

    ``client`` (`loadwise.spark_source.cluster.client.Client`) is what the ranges were found out with; ``learned`` is
    what a stream keeps for `loadwise.spark_source.planning.sampling.record_bytes`.
    """
    wanted = options.plan
    if wanted.follow_group is not None:
        from loadwise.spark_source.planning.following import follow, owners_of  # noqa: PLC0415 - see check_installed

        return follow(ranges, owners_of(options.client, wanted.follow_group), wanted.follow_group)
    sizes: Mapping[TopicPartition, float] = {}
    densities: Mapping[TopicPartition, Density] = {}
    if wanted.load_by == "bytes" or (wanted.load_by is None and wanted.num_tasks != 1 and _is_much(ranges)):
        from loadwise.spark_source.planning.sampling import record_bytes  # noqa: PLC0415 - see check_installed

        sizes, densities = record_bytes(options, client, ranges, {} if learned is None else learned, monotonic())
    found = plan(
        ranges,
        assignor_named(wanted.assignor),
        num_tasks=wanted.num_tasks,
        min_tasks=wanted.min_tasks,
        slots=slots_of_driver(),
        split=wanted.split,
        cost_per_record=wanted.cost_per_record,
        record_bytes=sizes,
        max_records=wanted.max_records,
        sticky=sticky,
    )
    # A limit of records is one of offsets, and goes before even bytes.
    return even(found, densities) if densities and not wanted.max_records else found


def _is_much(ranges: Sequence[OffsetRange]) -> bool:
    """Whether a look at the records is worth it, so that tasks are even in their bytes."""
    return sum(map(len, ranges)) > MUCH
