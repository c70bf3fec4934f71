"""From a query's options to its plan: for batches, for streams, and to look at a plan without Spark."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from time import monotonic
from typing import TYPE_CHECKING

from loadwise.assignor.algorithms import ALGORITHMS, ON_REQUEST, algorithm
from loadwise.assignor.model import Assignor, TopicPartition
from loadwise.assignor.strategy import strategies
from loadwise.installation import pip_install
from loadwise.nearest import near_or_all
from loadwise.spark_source.errors import MissingDependencyError, OptionError
from loadwise.spark_source.options.query import SourceOptions, parse
from loadwise.spark_source.options.stores import with_stores
from loadwise.spark_source.planning.density import Density, even
from loadwise.spark_source.planning.plan import Plan, plan
from loadwise.spark_source.planning.slots import slots_of_driver
from loadwise.spark_source.pyspark_version import refuse_what_needs_later
from loadwise.spark_source.task import OffsetRange

if TYPE_CHECKING:
    from loadwise.spark_source.cluster.client import Client

logger = logging.getLogger(__name__)

MUCH = 5_000
"""Without ``loadBy``, the sizes of more records than these are sampled."""
ASSIGNORS = (*ALGORITHMS, *ON_REQUEST)
"""The names of our algorithms. A plan has no rebalance, so they have no eager or cooperative form."""
LIBRARIES = {
    "confluent_kafka": "confluent-kafka",
    "pyarrow": "pyarrow",
    "aiokafka": "aiokafka",
    "crc32c": "crc32c",
    "cramjam": "cramjam",
}
"""The modules that reading needs, and their packages."""


def check_installed() -> None:
    """Raise `MissingDependencyError`, which names the extra, unless everything that reading needs is installed."""
    for module, name in LIBRARIES.items():
        if find_spec(module) is None:
            raise MissingDependencyError(
                f"format('loadwise') needs {name}, which is not installed; get it with: {pip_install('spark')}"
            )


def checked(options: Mapping[str, str], *, streaming: bool = False) -> SourceOptions:
    """Return the options of a query, with all that can be checked without Kafka.

    Raises `OptionError`, `MissingDependencyError`.
    """
    check_installed()
    refuse_what_needs_later(options, streaming=streaming)
    parsed = parse(options, streaming=streaming)
    assignor_named(parsed.plan.assignor)
    return replace(parsed, client=with_stores(parsed.client))


def planned(options: Mapping[str, str]) -> Plan:
    """Return the plan that a query with these options would have now; needs no Spark.

    Raises the errors of `checked`, `loadwise.spark_source.planning.ranges.resolve` and
    `loadwise.spark_source.planning.plan.plan`.
    """
    return planned_by(checked(options))


def partition_counts(options: Mapping[str, str], *, streaming: bool = False) -> dict[str, int]:
    """Return the number of partitions of each topic of a query; with ``assign``, the least possible one.

    Raises `OptionError`, `MissingDependencyError`, `OffsetsUnavailableError`.
    """
    parsed = checked(options, streaming=streaming)
    from loadwise.spark_source.cluster.client import connected  # noqa: PLC0415 - needs confluent-kafka: see check_installed
    from loadwise.spark_source.cluster.offsets import Cluster  # noqa: PLC0415 - likewise

    with connected(parsed.client, group_id_prefix=parsed.group_id_prefix) as client:
        places = Cluster(client, parsed.look_up_ms).found(parsed).partitions
    return {topic: number + 1 for topic, number in places}  # sorted, so the last one counts


def planned_by(options: SourceOptions) -> Plan:
    """Return the same as `planned`, for parsed options."""
    from loadwise.spark_source.cluster.client import kept_or_connected  # noqa: PLC0415 - needs confluent-kafka: see check_installed
    from loadwise.spark_source.cluster.offsets import Cluster  # noqa: PLC0415 - likewise
    from loadwise.spark_source.planning.ranges import resolve  # noqa: PLC0415 - likewise

    if options.ignored:
        logger.warning("ignored options: %s", ", ".join(options.ignored))
    with kept_or_connected(options.client, group_id_prefix=options.group_id_prefix) as client:
        return shared_out(resolve(options, Cluster(client, options.look_up_ms)), options, client)


def shared_out(
    ranges: Sequence[OffsetRange],
    options: SourceOptions,
    client: Client,
    *,
    sticky: bool = False,
    learned: dict[TopicPartition, tuple[float, float]] | None = None,
) -> Plan:
    """Return the plan for these ranges. Raises `PlanError`, `GroupUnavailableError`.

    ``client`` looked the ranges up; ``learned`` is kept by a stream for
    `loadwise.spark_source.planning.sampling.record_bytes`.
    """
    wanted = options.plan
    if wanted.follow_group is not None:
        from loadwise.spark_source.planning.following import follow, owners_of  # noqa: PLC0415 - see check_installed

        owners = owners_of(options.client, wanted.follow_group, look_up_ms=options.look_up_ms)
        return follow(ranges, owners, wanted.follow_group)
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
        slots=_slots(),
        split=wanted.split,
        cost_per_record=wanted.cost_per_record,
        record_bytes=sizes,
        max_records=wanted.max_records,
        sticky=sticky,
    )
    # A limit of records is one of offsets, and wins over even bytes.
    return even(found, densities) if densities and not wanted.max_records else found


@cache
def _slots() -> int | None:
    """Return the driver's slots, which do not change while its JVM and so this process run."""
    return slots_of_driver()


def _is_much(ranges: Sequence[OffsetRange]) -> bool:
    """Whether sampling the sizes of records is worth it."""
    return sum(map(len, ranges)) > MUCH


def assignor_named(name: str) -> Assignor:
    """Find an assignor: one of `ASSIGNORS`, or ``package.module.Name`` of an object or of a class without arguments.

    Raises `OptionError` for an unknown name, or an object that is no `Assignor`.
    """
    if name in ASSIGNORS:
        return algorithm(name)
    module, dot, attribute = name.rpartition(".")
    if not dot:
        # A name on the wire, such as cooperative-weighted, means its algorithm.
        on_the_wire = strategies().get(name)
        wanted = on_the_wire.algorithm if on_the_wire is not None else name
        hint = near_or_all(wanted, (*ASSIGNORS, "your own as module.Name"))
        raise OptionError("assignor", f"there is no {name!r}{hint}")
    if not module or module.startswith("."):
        raise OptionError("assignor", f"{name!r} is relative to a module; write the whole name: package.module.Name")
    try:
        found = getattr(import_module(module), attribute)
    except ImportError as error:
        raise OptionError("assignor", f"cannot import {module!r} in Spark's Python process: {error}") from error
    except AttributeError:
        raise OptionError("assignor", f"module {module!r} has no {attribute!r}") from None
    if isinstance(found, type):
        try:
            found = found()
        except TypeError as error:
            raise OptionError("assignor", f"class {name} must take no arguments: {error}") from error
    if not callable(getattr(found, "assign", None)) or not isinstance(getattr(found, "name", None), str):
        raise OptionError(
            "assignor", f"{name} is not an Assignor: it needs a name (str) and assign(group) -> Assignment"
        )
    assignor: Assignor = found
    return assignor
