"""AlterClientQuotas (49, v0 to v1): sets or deletes quotas of users, client ids and addresses (KIP-546).

v1 flexible.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.configs.definitions import BadConfigError
from loadwise.coordinator.handling.access import of_cluster
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.quotas.feature import ClusterQuotas
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import AlterClientQuotasRequest, AlterClientQuotasResponse

_Entry = AlterClientQuotasResponse.EntryData


def handle(call: Call[AlterClientQuotasRequest], cluster: Cluster) -> Turns[AlterClientQuotasResponse]:
    """Change each entity separately; one that is named again is not changed again, and gets an error."""
    entries: dict[frozenset[tuple[str, str | None]], _Entry] = {}
    for entry in call.body.entries:
        yield 1 + len(entry.entity)
        error, message = ErrorCode.NONE, None
        entity = {each.entity_type: each.entity_name for each in entry.entity}  # as in Kafka, the last of a type counts
        changes = {each.key: None if each.remove else each.value for each in entry.ops}
        try:
            if frozenset(entity.items()) in entries:
                raise BadConfigError("the entity is named twice; the later entry is ignored")
            if len(changes) < len(entry.ops):
                raise BadConfigError("a quota is named twice; no quota of this entity was changed")
            quotas = ClusterQuotas.of(cluster).quotas
            quotas.alter(tuple(entity.items()), changes, validate_only=call.body.validate_only)
        except BadConfigError as problem:
            error, message = ErrorCode.INVALID_REQUEST, str(problem)
        entries[frozenset(entity.items())] = _Entry(
            error_code=error,
            error_message=message,
            entity=[_Entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        )
    return AlterClientQuotasResponse(entries=list(entries.values()))


guard = of_cluster(Operation.ALTER_CONFIGS)
