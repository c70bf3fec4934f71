"""AlterConfigs (33, v0 to v2): replaces all configs of a resource.

v1 throttled after the response; v2 flexible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.configs.definitions import Definitions
from loadwise.coordinator.handling.access import open_to_all
from loadwise.coordinator.handling.config_changes import RefusedChangeError, changed
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import AlterConfigsRequest, AlterConfigsResponse

_Resource = AlterConfigsRequest.AlterConfigsResource


def handle(call: Call[AlterConfigsRequest], cluster: Cluster) -> Turns[AlterConfigsResponse]:
    """Replace the configs of each resource."""
    row = AlterConfigsResponse.AlterConfigsResourceResponse
    responses = yield from changed(call, cluster, row, nulls=_nulls, change=_replaced, change_loggers=_no_loggers)
    return AlterConfigsResponse(responses=responses)


def _nulls(resource: _Resource) -> Sequence[str]:
    return [each.name for each in resource.configs if each.value is None]


def _replaced(_: Mapping[str, str], __: Definitions, resource: _Resource) -> Mapping[str, str]:
    return {each.name: each.value for each in resource.configs if each.value is not None}


def _no_loggers(_: Call[AlterConfigsRequest], __: Cluster, ___: _Resource) -> None:
    message = "AlterConfigs is deprecated and does not support the resource type BROKER_LOGGER."
    raise RefusedChangeError(ErrorCode.INVALID_REQUEST, message)


guard = open_to_all
