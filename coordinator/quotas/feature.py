"""The client quotas of one cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from loadwise.coordinator.calls.refusal_shapes import Refused, Rows
from loadwise.coordinator.feature import Feature
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.keeper import Place, Snapshot
from loadwise.coordinator.quotas.client_quotas import ClientQuotas, QuotaRecord


class ClusterQuotas(Feature):
    """The quotas that were set in a cluster."""

    refusals: ClassVar[Mapping[str, Refused]] = {
        "AlterClientQuotas": Refused([Rows("entries", "entries", inner=Rows("entity", "entity"))]),
        "DescribeClientQuotas": Refused(values=lambda _, __: {"entries": None}),
    }

    def __init__(self, cluster: Cluster) -> None:
        self.quotas = ClientQuotas(cluster.keeper)

    @classmethod
    def kinds(cls) -> Mapping[str, type]:
        """Return the kinds of values that it keeps, by their names in a data directory."""
        return {"quota": QuotaRecord}

    def load(self, state: Snapshot) -> None:
        """Load the quotas."""
        self.quotas.load(state.of(QuotaRecord))

    def values(self) -> Iterable[tuple[Place, object]]:
        """Return the quotas of each entity."""
        return ((each.place, each) for each in self.quotas.records())


FEATURE = ClusterQuotas
