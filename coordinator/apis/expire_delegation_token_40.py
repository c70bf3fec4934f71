"""ExpireDelegationToken (40, v1 to v2): makes a token expire earlier. v2 flexible."""

from __future__ import annotations

from loadwise.coordinator.access import open_to_all
from loadwise.coordinator.apis.token_refusals import refuse_new_end
from loadwise.coordinator.calls import Call, Message
from loadwise.coordinator.kafka_cluster import Cluster


def handle(call: Call, _: Cluster) -> Message:
    """Return the error, because tokens are disabled."""
    return refuse_new_end(call)


guard = open_to_all
