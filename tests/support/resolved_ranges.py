"""What there is to read, as a query finds it out that has a connection of its own."""

from __future__ import annotations

from loadwise.spark_source.cluster.client import connected
from loadwise.spark_source.cluster.offsets import Cluster
from loadwise.spark_source.options.query import SourceOptions
from loadwise.spark_source.planning.ranges import resolve
from loadwise.spark_source.task import OffsetRange


def resolved(options: SourceOptions) -> list[OffsetRange]:
    """The offset range of every partition; raises what `resolve` raises."""
    with connected(options.client, group_id_prefix=options.group_id_prefix) as client:
        return resolve(options, Cluster(client, options.look_up_ms))
