"""The ACLs of one cluster, and the authorizer that decides by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from loadwise.coordinator.authorization.authorizer import AclRecord, Authorizer
from loadwise.coordinator.authorization.options import Authorization
from loadwise.coordinator.calls.refusal_shapes import Refused, Rows
from loadwise.coordinator.feature import Feature
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.keeper import Place, Snapshot


class ClusterAcls(Feature):
    """The ACLs of a cluster, if its security has an `Authorization`."""

    refusals: ClassVar[Mapping[str, Refused]] = {
        "CreateAcls": Refused([Rows("results", "creations")]),
        "DeleteAcls": Refused([Rows("filter_results", "filters")]),
    }

    def __init__(self, cluster: Cluster) -> None:
        options = None if cluster.security is None else cluster.security.authorization
        self.authorizer: Authorizer | None = None
        if isinstance(options, Authorization):
            self.authorizer = options.authorizer(cluster.keeper)
        cluster.authorizer = self.authorizer

    @classmethod
    def kinds(cls) -> Mapping[str, type]:
        """Return the kinds of values that it keeps, by their names in a data directory."""
        return {"acl": AclRecord}

    def load(self, state: Snapshot) -> None:
        """Load what administrators changed."""
        if self.authorizer is not None:
            self.authorizer.load(state.of(AclRecord))

    def values(self) -> Iterable[tuple[Place, object]]:
        """Return what administrators changed."""
        return () if self.authorizer is None else ((each.place, each) for each in self.authorizer.records())


FEATURE = ClusterAcls
