"""DescribeClientQuotas (48, v0 to v1): lists quotas of users, client ids and addresses (KIP-546).

v1 flexible.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.configs.definitions import BadConfigError
from loadwise.coordinator.handling.access import of_cluster
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.quotas.client_quotas import UnknownEntityError, WantedEntity, check_filter
from loadwise.coordinator.quotas.feature import ClusterQuotas
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DescribeClientQuotasRequest, DescribeClientQuotasResponse

_Entry = DescribeClientQuotasResponse.EntryData


def handle(call: Call[DescribeClientQuotasRequest], cluster: Cluster) -> DescribeClientQuotasResponse:
    """List the quotas that match the filter."""
    wanted = [WantedEntity(each.entity_type, each.match_type, each.match) for each in call.body.components]
    try:
        check_filter(wanted)
    except BadConfigError as problem:
        is_unknown = isinstance(problem, UnknownEntityError)
        error = ErrorCode.UNSUPPORTED_VERSION if is_unknown else ErrorCode.INVALID_REQUEST
        return DescribeClientQuotasResponse(error_code=error, error_message=str(problem), entries=None)
    entries = [
        _Entry(
            entity=[_Entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
            values=[_Entry.ValueData(key=key, value=value) for key, value in quotas.items()],
        )
        for entity, quotas in ClusterQuotas.of(cluster).quotas.matching(wanted, strict=call.body.strict)
    ]
    return DescribeClientQuotasResponse(error_code=ErrorCode.NONE, error_message=None, entries=entries)


guard = of_cluster(Operation.DESCRIBE_CONFIGS)
